"""How much a line gives away by itself: a linear model that never sees the text.

Its log-probabilities are added to the reader's logits while it learns and left out when it answers,
so that the reader gains nothing from the line alone (product of experts, He et al. 2019,
Clark et al. 2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from steelyard_base_recipe.reader.model import N_LABELS

_FOLDS = 5
#: No log-probability below this: a rare word must not outweigh what the text says.
_FLOOR = 0.02


def line_log_probabilities(
    lines: Sequence[str], labels: Sequence[int], groups: Sequence[str]
) -> NDArray[np.float32]:
    """Return log-probabilities (lines, 3) of models that were fitted on the lines of other texts."""
    fold_of = {group: i % _FOLDS for i, group in enumerate(sorted(set(groups)))}
    folds = np.array([fold_of[group] for group in groups])
    texts, targets = np.array(lines), np.array(labels)
    result = np.zeros((len(lines), N_LABELS), dtype=np.float32)
    for fold in range(_FOLDS):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        known = words.fit_transform(texts[outside])
        model = LogisticRegression(C=2.0, max_iter=300).fit(known, targets[outside])
        shares = np.full((len(inside), N_LABELS), _FLOOR)
        shares[:, model.classes_] = model.predict_proba(words.transform(texts[inside]))
        result[inside] = np.log(np.maximum(shares, _FLOOR))
    return result

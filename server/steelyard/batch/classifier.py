"""A scikit-learn classifier of texts: the shipped model's answers, calibrated on the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from steelyard.batch.answering import by_this_process
from steelyard.batch.scoring import named_questions
from steelyard.bulk.columns import Answered
from steelyard.client import Client, ClientOptions
from steelyard.decisions.several import multi_label
from steelyard.errors import SteelyardError
from steelyard.ids import new_id
from steelyard.settings import read_settings
from steelyard.wire.limits import MAX_DECISIONS

_FLOOR = 1e-9
_MOST_CLASSES = 255


class SteelyardClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of texts that asks one question about each.

    ``fit`` takes the classes from the labels and, with ``calibrate``, fits a logistic regression on
    the logarithms of the model's probabilities (matrix scaling; Guo et al., 2017, Kull et al.,
    2019). Without, the model answers as it is and the labels only name the outcomes.

    Parameters
    ----------
    question
        The question about each text.
    outcomes
        Descriptions of classes, by class; a class that is not in it goes by its name alone.
    calibrate
        Whether probabilities are fitted to the training rows.
    C
        Inverse strength of the fit's regularisation, above 0.
    model
        Name of a base model; the shipped one when left out.
    decision
        A named decision of a server, such as ``"support_triage"``, whose first question that has
        all classes among its outcomes is asked instead.
    url
        Where that server is; ``STEELYARD_URL``, or this machine, when left out.
    multi
        Whether a text has any number of the classes: ``y`` is then a list of classes for each text,
        each class is asked as a yes/no decision (``{}`` in the question stands for it), and answers
        have a column for each. Not with ``decision``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.

    Raises
    ------
    ValueError
        When a text cannot be read, or the labels are of one class, or of more than 255.

    Examples
    --------
    >>> from steelyard import SteelyardClassifier
    >>> team = SteelyardClassifier("Which team should own this ticket?")
    >>> team.fit(texts, teams).predict(["I was charged twice."])  # doctest: +SKIP
    array(['billing'], dtype='<U8')
    """

    def __init__(
        self,
        question: str = "Which of these is it about?",
        outcomes: Mapping[Any, str] | None = None,
        *,
        calibrate: bool = True,
        C: float = 1.0,  # noqa: N803  scikit-learn's name
        model: str | None = None,
        decision: str | None = None,
        url: str | None = None,
        multi: bool = False,
    ) -> None:
        self.question = question
        self.outcomes = outcomes
        self.calibrate = calibrate
        self.C = C
        self.model = model
        self.decision = decision
        self.url = url
        self.multi = multi

    def fit(self, X: Sequence[str], y: Sequence[Any]) -> SteelyardClassifier:  # noqa: N803
        """Take the classes from ``y`` and fit the calibration; return the classifier."""
        if self.multi:
            return self._fit_multi(_texts(X), y)
        texts, labels = _texts(X), np.asarray(y)
        if len(texts) != len(labels):
            raise ValueError(
                f"There are {len(texts)} texts and {len(labels)} labels; give as many."
            )
        check_classification_targets(labels)
        self.classes_: NDArray[Any] = np.unique(labels)
        if not 2 <= len(self.classes_) <= _MOST_CLASSES:
            raise ValueError(
                f"The labels are of {len(self.classes_)} class(es); give 2 to {_MOST_CLASSES}."
            )
        self.fitted_: LogisticRegression | None = None
        if self.calibrate:
            fit = LogisticRegression(C=self.C, max_iter=1000)
            self.fitted_ = fit.fit(self._logs(texts), labels)
        return self

    def predict_proba(self, X: Sequence[str]) -> NDArray[np.float64]:  # noqa: N803
        """Return the probability of each class, of shape (n, n_classes)."""
        check_is_fitted(self)
        if self.multi:
            return self._fitted_shares(self._odds(_texts(X)))
        logs = self._logs(_texts(X))
        if self.fitted_ is None:
            shares: NDArray[np.float64] = np.exp(logs)
            normalised: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
            return normalised
        probabilities: NDArray[np.float64] = self.fitted_.predict_proba(logs)
        return probabilities

    def predict(self, X: Sequence[str]) -> NDArray[Any]:  # noqa: N803
        """Return the likeliest class of each text, of shape (n,).

        With ``multi`` whether each class fits, of shape (n, n_classes), as scikit-learn's metrics
        of several labels take it.
        """
        probabilities = self.predict_proba(X)
        if self.multi:
            fits: NDArray[Any] = (probabilities >= 0.5).astype(np.int64)
            return fits
        classes: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def _fit_multi(self, texts: list[str], y: Sequence[Any]) -> SteelyardClassifier:
        if self.decision is not None:
            raise ValueError("multi asks a decision for each class; leave decision out.")
        if any(isinstance(labels, str) for labels in y) or len(texts) != len(y):
            raise ValueError(f"Give a list of classes for each of the {len(texts)} texts.")
        self.classes_ = np.unique([label for labels in y for label in labels])
        if not 2 <= len(self.classes_) <= MAX_DECISIONS:
            raise ValueError(
                f"The labels are of {len(self.classes_)} class(es); give 2 to {MAX_DECISIONS}."
            )
        self.fits_: list[LogisticRegression | None] = [None] * len(self.classes_)
        if self.calibrate:
            odds = self._odds(texts)
            for place, class_ in enumerate(self.classes_):
                fits = np.array([class_ in labels for labels in y])
                if fits.any() and not fits.all():
                    fit = LogisticRegression(C=self.C, max_iter=1000)
                    self.fits_[place] = fit.fit(odds[:, [place]], fits)
        return self

    def _fitted_shares(self, odds: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = 1 / (1 + np.exp(-odds))
        for place, fit in enumerate(self.fits_):
            if fit is not None:
                shares[:, place] = fit.predict_proba(odds[:, [place]])[:, 1]
        return shares

    def _odds(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the logarithms of the odds that each class fits, (n, n_classes)."""
        names = [str(class_) for class_ in self.classes_]
        described = self.outcomes or {}
        labels = dict(zip(names, (described.get(class_) for class_ in self.classes_), strict=True))
        decisions = multi_label("class", labels, self.question)
        answers = self._answers(texts, decisions)
        rows = [
            [answered[decision["id"]]["probabilities"]["yes"] for decision in decisions]
            for answered in _usable(answers)
        ]
        shares = np.clip(np.reshape(np.asarray(rows, float), (-1, len(names))), _FLOOR, 1 - _FLOOR)
        odds: NDArray[np.float64] = np.log(shares) - np.log1p(-shares)
        return odds

    def _logs(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the logarithms of the model's probabilities, (n, n_classes)."""
        names = [str(class_) for class_ in self.classes_]
        id_, answers = self._ask_named(texts, names) if self.decision else self._ask(texts, names)
        rows = [
            [answered[id_]["probabilities"][name] for name in names]
            for answered in _usable(answers)
        ]
        shares = np.asarray(rows, dtype=np.float64).reshape(-1, len(names))
        logs: NDArray[np.float64] = np.log(np.clip(shares, _FLOOR, 1))
        return logs

    def _ask_named(
        self, texts: Sequence[str], names: Sequence[str]
    ) -> tuple[str, Sequence[Answered]]:
        """Return the named decision's answers, and the id of the question that has the classes."""
        settings = read_settings({"url": self.url})
        with Client(ClientOptions(settings.url, settings.api_key)) as client:
            questions = named_questions(str(self.decision), client)
            for question in questions.checked():
                if set(names) <= set(question.outcomes.names):
                    keys = [new_id("row") for _ in texts]
                    return question.id, questions.answer()(questions.rows(None, texts), keys)
        raise ValueError(
            f"No question of {self.decision} has the classes {', '.join(names[:8])} among its "
            "outcomes; fit on labels that it has."
        )

    def _ask(self, texts: Sequence[str], names: Sequence[str]) -> tuple[str, Sequence[Answered]]:
        """Return the answers of a model in this process, and the id of the question."""
        described = self.outcomes or {}
        outcomes = dict(
            zip(names, (described.get(class_) for class_ in self.classes_), strict=True)
        )
        decision = {"id": "class", "question": self.question, "outcomes": outcomes}
        return "class", self._answers(texts, [decision])

    def _answers(
        self, texts: Sequence[str], decisions: Sequence[Mapping[str, Any]]
    ) -> Sequence[Answered]:
        from steelyard.app.deployment import default_deployment  # noqa: PLC0415

        values: dict[str, Any] = {"decisions": decisions}
        if self.model is not None:
            values["model"] = self.model
        return by_this_process(default_deployment(self.model).answers, values)(texts, [])


def _usable(answers: Sequence[Answered]) -> Iterator[Mapping[str, Any]]:
    """Yield answers; raise ``ValueError`` for a text that has none."""
    for place, answered in enumerate(answers):
        if isinstance(answered, SteelyardError):
            message = f"Text {place} cannot be used: {answered.message}"
            raise ValueError(message) from answered  # noqa: TRY004
        yield answered


def _texts(texts: Sequence[str]) -> list[str]:
    """Return texts as a list; raise ``ValueError`` for other values."""
    if isinstance(texts, str):
        raise ValueError("Give a sequence of texts, not one text.")  # noqa: TRY004  scikit-learn's
    listed = list(texts)
    for place, text in enumerate(listed):
        if not isinstance(text, str):
            raise ValueError(f"X[{place}] is of type {type(text).__name__}; give texts.")  # noqa: TRY004
    return listed

"""An entailment encoder, loaded: logits of pairs of a context and a statement.

Each pair is a pass of its own at its own length. Graphs with dynamic int8 scale a pass by its contents,
so that a pair's logits would depend on the others; alone, the same pair has the same bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.cancellation import check_awaited
from steelyard.scoring.entailment.folder import GRAPH, TOKENIZER, EncoderFacts, bounded
from steelyard.scoring.entailment.windows import windows_of
from steelyard.settings import InvalidSettingError

#: Characters of a statement that are tokenized: more than half of any encoder's input here.
_MAX_STATEMENT = 16_384
#: Tokens that a part of a text may have more than the same characters had in the whole text.
_SPARE_TOKENS = 4
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_PADDINGS = ("[PAD]", "<pad>")

Logits = NDArray[np.float64]


class Encoder:
    """The encoder of a folder, thread-safe; ``InvalidSettingError`` where its files are not one's."""

    def __init__(self, facts: EncoderFacts, *, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(facts.folder / GRAPH), options, providers=["CPUExecutionProvider"]
            )
            words = (facts.folder / TOKENIZER).read_text(encoding="utf-8")
            self._words, self._pairs = Tokenizer.from_str(words), Tokenizer.from_str(words)
        except Exception as error:  # neither library has a class of its own for this
            raise InvalidSettingError(
                f"The encoder in {facts.folder} cannot be loaded: "
                f"{str(error).splitlines()[0][:200]}. Download it again, or choose another."
            ) from error
        self.output, self._length = self._check_shapes(facts)
        if self._length is not None:
            facts = bounded(facts, self._length)
        if facts.pad_id is None:
            ids = [self._words.token_to_id(token) for token in _PADDINGS]
            facts = replace(facts, pad_id=next((n for n in ids if n is not None), 0))
        self.facts = facts
        self._context_first = not facts.manifest.hypothesis_first
        for tokenizer in (self._words, self._pairs):
            tokenizer.no_padding()
            tokenizer.no_truncation()
            # What a context says is data: "[SEP]" written in it is no end of it.
            tokenizer.encode_special_tokens = True
        cut = "only_first" if self._context_first else "only_second"
        self._pairs.enable_truncation(facts.max_tokens, strategy=cut)

    def windows(self, context: str, statements: tuple[str, ...]) -> list[str]:
        """Return the parts of a context that are read with any of some statements."""
        longest = max(
            len(self._words.encode(text, add_special_tokens=False)) for text in statements
        )
        room = self.facts.max_tokens - longest - self._words.num_special_tokens_to_add(is_pair=True)
        tokens = self._words.encode(context, add_special_tokens=False).offsets
        if len(tokens) <= room:
            return [context]
        return windows_of(context, tokens, max(room - _SPARE_TOKENS, 1))

    def fitting(self, statement: str) -> str:
        """Return the end of a statement that leaves half of the encoder's length to the context."""
        most, text = self.facts.max_tokens // 2, statement[-_MAX_STATEMENT:]
        offsets = self._words.encode(text, add_special_tokens=False).offsets
        return statement if len(offsets) <= most else text[offsets[-most][0] :]

    def inputs(self, context: str, statement: str) -> dict[str, NDArray[np.integer[Any]]]:
        """Return the inputs of the graph for a pair."""
        pair = (context, statement) if self._context_first else (statement, context)
        encoding = self._pairs.encode(*pair)
        length = self._length or len(encoding)
        rows = {
            "input_ids": (encoding.ids, self.facts.pad_id),
            "attention_mask": (encoding.attention_mask, 0),
            "token_type_ids": (encoding.type_ids, 0),
            "position_ids": (range(len(encoding)), 0),
        }
        return {
            each.name: np.array(
                [[*rows[each.name][0], *[rows[each.name][1]] * (length - len(encoding))]],
                _TYPES[each.type],
            )
            for each in self._session.get_inputs()
        }

    def logits(self, context: str, statement: str) -> Logits:
        """Return the logits of a pair, in the graph's order."""
        check_awaited()
        inputs = self.inputs(context, statement)
        try:
            [logits] = self._session.run([self.output], inputs)
        except Exception as error:  # the runtime's errors have no common class
            raise EngineUnavailableError(
                f"The encoder in {self.facts.folder.name} failed on a pair; look at the log."
            ) from error
        values = np.asarray(logits, np.float64).reshape(-1)
        if values.shape != (self.facts.n_labels,):
            raise EngineUnavailableError(
                f"The encoder in {self.facts.folder.name} gave {values.size} logits, and its labels are "
                f"{self.facts.n_labels}; correct id2label in its config.json."
            )
        return values

    def _check_shapes(self, facts: EncoderFacts) -> tuple[str, int | None]:
        """Return the output with the logits, and the length of a graph that has a fixed one."""
        inputs: list[Any] = self._session.get_inputs()
        known = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        names = {each.name for each in inputs}
        if (
            "input_ids" not in names
            or names - known
            or {each.type for each in inputs} - _TYPES.keys()
        ):
            raise InvalidSettingError(
                f"The graph in {facts.folder} takes {', '.join(sorted(names))[:120]}; an encoder takes "
                "input_ids, attention_mask and perhaps token_type_ids, as integers."
            )
        [shape] = [each.shape for each in inputs if each.name == "input_ids"]
        if len(shape) != 2 or (isinstance(shape[0], int) and shape[0] != 1):
            raise InvalidSettingError(
                f"The graph in {facts.folder} takes input_ids of shape {shape}; export it with a batch "
                "of any size, or of 1."
            )
        outputs = {each.name: each.shape for each in self._session.get_outputs()}
        name = "logits" if "logits" in outputs else next(iter(outputs))
        width = outputs[name][-1] if outputs[name] else None
        if isinstance(width, int) and width != facts.n_labels:
            raise InvalidSettingError(
                f"The graph in {facts.folder} gives {width} logits, and its labels are "
                f"{facts.n_labels}; correct id2label in {facts.folder.name}/config.json, or give --labels."
            )
        return name, shape[1] if isinstance(shape[1], int) else None

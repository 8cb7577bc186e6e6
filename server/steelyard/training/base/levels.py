"""Made-up contexts that say how much of something there is, and questions with levels to answer.

Labelled texts have few scales, most of them of feeling. Here every level of every scale is equally
frequent, in words that are not the level's own, so that what is taught is the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from steelyard.training.base.records import Made

T = TypeVar("T")

#: A scale: ``?`` questions, ``=`` names from the lowest level to the highest, ``-`` sentences, and
#: what stands in them for each of the five levels, the lowest first.
_SCALES = """
? How pressing is it? | How soon does this need an answer? | How quickly should somebody act? | What priority has this?
= can wait; not pressing; some pressure; pressing; immediate
= no priority; low priority; normal priority; high priority; top priority
= whenever there is time; some time soon; this week; today; at once
= lowest; low; medium; high; highest
- {who} needs the {n} {p}. | The {n} has to be there {p}. | {who} asks whether the {n} can be looked at {p}. | We want the {n} {p}.
0 some day | whenever it suits you | by the end of next year | in a few months, or later
1 by next month | in a couple of weeks | before the end of the quarter | within thirty days
2 by Friday | later this week | within four or five days | before the weekend
3 tomorrow morning | by this evening | within a day | before the shop closes today
4 right now | this very minute | immediately | within the next few minutes, before it is too late

? How bad is the damage? | How severe is it? | How serious is the problem? | What is the severity?
= none; minor; moderate; major; total
= harmless; slight; considerable; severe; devastating
= S5; S4; S3; S2; S1
= very low; low; medium; high; very high
- After the storm {p}. | {who} reports that {p}. | We found that {p}. | Since Tuesday {p}.
0 everything works as before | nothing was harmed | there is not a mark on the {n}
1 the {n} has a small scratch | one letter on the {n} is hard to read | the {n} squeaks a little
2 the {n} works on some days only | half of the {n} has to be replaced | the {n} is slow and leaks a bit
3 the {n} does not start any more and all work stands still | most of the {n} is ruined | the {n} broke and two people were hurt
4 the whole building burned down with the {n} in it | nothing is left of the {n} | people died when the {n} fell

? How many are affected? | How large a part is concerned? | How widespread is it?
= nobody; a few; about half; most; everybody
= none of them; a minority; half of them; a majority; all of them
= 0 %; 1 to 40 %; 41 to 60 %; 61 to 99 %; 100 %
- {p} of our customers cannot use the {n}. | {p} of the staff have trouble with the {n}. | {p} of the {n}s we sold came back.
0 Not a single one | None | Not one
1 One or two | Hardly any | A small number | Some three in a hundred
2 Every second one | About fifty per cent | Roughly half | Around one half
3 Nearly all | The great majority | Nine out of ten | All but a few
4 All | Every single one | A hundred per cent | Each and every one

? How satisfied is the writer? | How did they like it? | How would you rate this review? | What does the writer think of the {n}?
= very dissatisfied; dissatisfied; neutral; satisfied; very satisfied
= terrible; poor; average; good; excellent
= 1 star; 2 stars; 3 stars; 4 stars; 5 stars
= 1; 2; 3; 4; 5
- {p} | About the {n}: {p} | {p} That is my view of the {n}.
0 The worst {n} I ever had, and I want my money back. | Awful from beginning to end; never again. | I hate everything about this {n}.
1 I expected more of the {n}; it has several faults. | Not good: the {n} is flimsy and came late. | A weak {n}, I would not buy it again.
2 The {n} is all right, nothing special. | It does what it says, no more and no less. | Some things are fine, others are not.
3 A good {n}, with one small thing to mend. | I like the {n} and would buy it again. | Works well; pleased on the whole.
4 I love this {n}, it is perfect! | The best {n} I ever had, everyone should get one. | Flawless; better than I dreamed of.

? How often does it happen? | How frequent is this? | How regularly does this occur?
= never; rarely; sometimes; often; always
= never; once in a while; now and then; most of the time; every time
= not at all; several days; half of the days; nearly every day; every day
- The {n} fails {p}. | {who} forgets the {n} {p}. | {p} the {n} has to be started again. | Trouble with the {n} comes up {p}.
0 at no time | not once in all these years | on no occasion whatsoever
1 about once a year | once in a blue moon | on very few occasions
2 every other week or so | from time to time | on some days and not on others
3 on most days | six days out of seven | more days than not
4 each time without exception | day after day, with no break | whenever it is used, every single time

? How likely is it? | How probable does the writer find it? | What are the chances of it?
= impossible; unlikely; possible; likely; certain
= no chance; small chance; even chance; good chance; sure
- {p} that the {n} comes back next year. | {who} thinks: {p} that we get the {n}. | {p} that the {n} will be ready.
0 There is no way | It is out of the question | It cannot possibly be
1 I doubt | There is only a slim chance | It would surprise me
2 It may well be, or may not be, | It could go either way | There are even odds
3 I am fairly confident | There is every prospect | It looks very much as if it were so
4 There is no doubt whatsoever | It is settled beyond question | I guarantee you

? How far does the writer agree? | Does the speaker agree with the plan? | How strong is the support for the {n}?
= strongly disagree; disagree; neither; agree; strongly agree
= fully against; rather against; undecided; rather for; fully for
- {p} | On the {n}, {who} says: {p} | Asked for an opinion, {who} wrote: {p}
0 I reject it completely, it is an outrage. | Over my dead body. | There is nothing whatever to be said for it.
1 I do not think that it is a good idea. | I would rather we did not. | On balance I am not convinced.
2 I have no opinion on that. | There are as many reasons for it as there are against it. | I cannot make up my mind.
3 It seems a sensible idea to me. | On the whole I am in favour. | I would go along with it.
4 I could not agree more, with all my heart. | Absolutely, we must do this. | I back it fully and without any reserve.

? How late was the {n}? | How long was the delay? | How punctual was it?
= on time; slightly late; late; very late; never came
= no delay; minutes; hours; days; not at all
- The {n} was promised for noon; {p}. | We waited for the {n}: {p}. | {who} wrote about the {n}: {p}.
0 it was there at noon sharp | it came to the minute | it was even there a little early
1 it came at ten past twelve | five minutes later it was there | it took a quarter of an hour more
2 it came in the late afternoon | it was dark when it came, at six | four hours later it was there
3 it came three days afterwards | we had it on the Thursday of the week after | a week went by until it came
4 to this day it has not come | in the end we gave up, it never arrived | it was lost and nobody has seen it since

? How much experience has the person? | How experienced is the candidate? | Which seniority is this?
= none; some; moderate; much; very much
= novice; beginner; intermediate; advanced; expert
- {who} {p}. | From the letter: {who} {p}. | About the applicant: {who} {p}.
0 has never done this kind of work | has not begun to learn the trade | saw a {n} for the first time this morning
1 had a course of two weeks on it | has helped with a {n} three or four times | is in the first months of training
2 has worked with it for two years | can do the usual tasks alone | knows the {n} well enough for everyday use
3 has done this for ten years and leads a team | is asked by colleagues for hard cases | has built many a {n} from nothing
4 wrote the standard book on it | has taught it at universities for thirty years | is known all over the world for work on the {n}

? How difficult was it? | How hard is the task? | How much effort did it take?
= trivial; easy; moderate; hard; extremely hard
= no effort; little effort; some effort; much effort; enormous effort
- {p} | {who} on setting up the {n}: {p} | {who} said: {p}
0 A child could do it in ten seconds. | There was nothing to do at all, one click. | It did itself while I drank my tea.
1 It took a few minutes and no thought. | Simple, with the leaflet in hand. | Hardly any trouble.
2 One afternoon, and I had to look up two things. | It needed some thought, but went well. | Neither quick nor slow; a fair bit of work.
3 I fought with it for three days. | It took a specialist and many attempts. | A real struggle, with many setbacks.
4 Ten experts failed for years before one managed it. | It brought us to our limits and beyond. | The hardest thing I did in my whole life.
"""
#: Words that stand before an adjective, from the least to the most.
_DEGREES = (
    ("not at all {a}", "not {a} in the least", "anything but {a}"),
    ("a little {a}", "slightly {a}", "a bit {a}", "ever so slightly {a}"),
    ("fairly {a}", "moderately {a}", "rather {a}", "more or less {a}"),
    ("very {a}", "really {a}", "truly {a}", "quite remarkably {a}"),
    ("extremely {a}", "incredibly {a}", "unbelievably {a}", "as {a} as it gets"),
)
_DEGREE_NAMES = (
    "not {a}; slightly {a}; moderately {a}; very {a}; extremely {a}",
    "not {a} at all; a little {a}; rather {a}; very {a}; extraordinarily {a}",
    "not at all; slightly; moderately; very; extremely",
    "1; 2; 3; 4; 5",
)
_DEGREE_QUESTIONS = (
    "How {a} was the {n}?",
    "How {a} is it?",
    "How {a} does the text call the {n}?",
)
_DEGREE_SENTENCES = ("The {n} was {p}.", "{who} found the {n} {p}.", "To me the {n} seemed {p}.")
_ADJECTIVES = (
    "loud", "cold", "warm", "crowded", "expensive", "polite", "helpful", "dirty", "dark", "heavy",
    "clear", "confusing", "slow", "fast", "reliable", "dangerous", "boring", "interesting", "sweet",
    "complicated", "modern", "formal", "friendly", "thorough", "relevant", "important", "risky",
    "comfortable", "creative", "technical", "tired", "angry", "worried", "detailed", "convincing",
)  # fmt: skip
_NOUNS = (
    "hall", "report", "machine", "kettle", "lecture", "bicycle", "lamp", "bridge", "camera", "stove",
    "jacket", "manual", "concert", "kitchen", "printer", "ferry", "exhibition", "sofa", "radio",
    "guide", "tent", "heater", "website", "timetable", "museum",
)  # fmt: skip
_WHO = ("Anna", "Mr Weber", "Ms Okafor", "Li", "The manager", "Our neighbour", "Tom", "The clerk")
_OTHERS = ("Reference number {i}.", "Thank you for your message.", "It was written on the {i}th.")
#: Which of five levels are left where there are fewer.
_FEWER = ((0, 1, 2, 3, 4), (0, 2, 4), (0, 1, 3, 4), (0, 4), (0, 1, 2, 3, 4))


@dataclass(frozen=True, slots=True)
class Scale:
    """Questions, names and sentences of one thing that there is more or less of."""

    questions: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]


def scales() -> list[Scale]:
    """Return every scale with sentences of its own."""
    return [_scale(block.splitlines()) for block in _SCALES.strip().split("\n\n")]


def made_levels(rng: np.random.Generator) -> tuple[str, list[Made]]:
    """Return a context that says how much of something there is, and a question on it."""
    adjective = _pick(_ADJECTIVES, rng)
    scale = _of_degree(adjective) if rng.random() < 0.35 else _pick(scales(), rng)
    kept = _pick(_FEWER, rng)
    right = int(rng.integers(len(kept)))
    phrase = _pick(scale.phrases[kept[right]], rng)
    given = {"n": _pick(_NOUNS, rng), "who": _pick(_WHO, rng), "i": str(rng.integers(4, 30))}
    said = _pick(scale.sentences, rng).format(p=phrase.format(**given), **given)
    sentences = [said[:1].upper() + said[1:]]
    if rng.random() < 0.4:
        sentences.append(_pick(_OTHERS, rng).format(**given))
    names = _pick(scale.names, rng)
    named = tuple(names[i] for i in kept)
    if names[0] == "1":  # numbers have no gaps
        named = names[: len(kept)]
    question = _pick(scale.questions, rng).format(**given)
    context = " ".join(sentences[i] for i in rng.permutation(len(sentences)))
    return context, [Made("ordinal", question, named, right)]


def _of_degree(adjective: str) -> Scale:
    def worded(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace("{a}", adjective) for text in texts)

    return Scale(
        worded(_DEGREE_QUESTIONS),
        tuple(_split(line.replace("{a}", adjective), ";") for line in _DEGREE_NAMES),
        _DEGREE_SENTENCES,
        tuple(worded(level) for level in _DEGREES),
    )


def _scale(lines: list[str]) -> Scale:
    by_mark: dict[str, list[str]] = {}
    for line in lines:
        by_mark.setdefault(line[0], []).append(line[2:])
    return Scale(
        _split(by_mark["?"][0], "|"),
        tuple(_split(line, ";") for line in by_mark["="]),
        _split(by_mark["-"][0], "|"),
        tuple(_split(by_mark[str(level)][0], "|") for level in range(5)),
    )


def _split(line: str, mark: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.split(mark))


def _pick(choices: Sequence[T], rng: np.random.Generator) -> T:
    return choices[int(rng.integers(len(choices)))]

"""Made-up contexts that say how much of something there is, and questions with levels to answer.

Labelled texts have few scales, most of them of feeling. Here every level of every scale is equally
frequent, in words that are not the level's own, so that what is taught is the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from steelyard.training.base.records import Made, pick

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
#: How soon somebody must act, told by what happens and not by a date.
_SITUATIONS = """
? How urgent is the matter? | How urgent is it? | How urgently is help needed? | How soon must somebody act? | Which priority does this deserve?
= not at all urgent; a little urgent; fairly urgent; urgent; of the utmost urgency
= no hurry; little hurry; some hurry; great hurry; emergency
= can wait for ever; can wait for weeks; should be done this week; should be done today; must be done this minute
= lowest; low; medium; high; highest
= P5; P4; P3; P2; P1
- {p} | {who} writes: {p} | {who} on the telephone: {p}
0 A caller would like to know when the office was founded. | What does the name of your company mean? | Somebody asks which fonts the brochure uses. | An owner wonders who designed the {n}. | I only wanted to say thank you for the {n}. | Is there a poster of your old logo? | A visitor asks how old the {n} is. | A collector is curious how many {n}s were ever made. | It would be nice if the {n} came in green too. | A member asks where the minutes of past years can be read. | Someone praises the music in the waiting room. | Do you also sell postcards? | A neighbour admires the new fence. | An applicant asks what the town is like. | Which of your colours is the most popular? | A colleague suggests another picture for the front page. | A passenger asks since when the trams have been yellow.
1 The handle of the {n} is a little loose. | We would like another cushion for the sofa. | A letter of the sign above the door is crooked. | A member wants the newsletter at another address. | Some time this season the grass could be cut. | A drawer of the {n} does not close smoothly. | Please send me a new copy of the manual, there is no hurry. | A guest found the soup a bit salty. | A driver asks for a newer map for the next tour in spring. | The paint on the bench has faded. | An icon sits two pixels too low. | A clerk wants a second screen next quarter. | The {n} makes a faint noise now and then. | A bulb in the corridor is dim. | A customer would rather have a paper receipt in future. | One of forty chairs wobbles. | The clock in the hall is a minute slow.
2 The {n} I bought has the wrong plug, so I cannot use it. | A driver's pass stops being valid in eight days. | Every third message is sent twice. | The washing machine in the basement is broken; there is a second one. | A supplier has not answered for two weeks and stock is getting low. | A cook is ill and the rota has a gap at the end of the week. | My order has been on its way for six days. | I paid for two {n}s and one came. | Reports take ten minutes to open since the update. | A team cannot print, but the floor below can. | The roof lets in a little water when it rains. | A worker's gloves have holes. | A passenger left a suitcase on the train. | A member was billed the wrong fee and asks for a correction. | The back door does not lock properly, the front door does. | Our heating is weak; it is cool but bearable. | An old couple waits for a ramp that was promised for last week.
3 The whole team has been unable to work since the morning. | Our shop cannot take any payments today. | My son has been stuck in the lift for twenty minutes and is calm. | The freezer with all the food for the wedding tomorrow has stopped. | Somebody broke the lock and the store stands open. | The last train has gone and eight children are at the station. | The bridge has a crack and lorries still cross it. | Water is running through the ceiling into the office. | The only pump of the plant failed; the tank overflows by tonight. | A worker was threatened by a customer and is afraid to go home. | Four hundred guests stand in front of a locked hall. | A laptop with the addresses of all members was stolen. | The website of the shop is down on the busiest day of the year. | An old man has not opened his door since yesterday. | A bus with forty people has broken down on a lonely road. | The lines are dead in half of the district. | Someone has published our password list.
4 The kitchen is on fire and people are inside. | A man has fallen onto the rails and a train is coming. | A child has fallen into the river. | Somebody is pointing a gun at the cashier. | The driver does not breathe. | The dam is breaking above the village. | An intruder is deleting all our data as I write. | The ferry is sinking with sixty people. | A worker is trapped under the {n} and bleeds heavily. | A wall has collapsed on a group of pupils. | The brakes of the bus have failed on the way down the hill. | Poison is running into the drinking water. | There has been an explosion in the hall; many are hurt. | My daughter has swallowed bleach. | The reactor cannot be cooled any more. | A lift with nine people is falling. | A crowd is being crushed against the gate.
"""
#: Share of the scales that is of situations, and of degrees.
SITUATION_SHARE, DEGREE_SHARE = 0.3, 0.25
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


@cache
def scales() -> tuple[Scale, ...]:
    """Return every scale with sentences of its own, that of situations last."""
    blocks = (*_SCALES.strip().split("\n\n"), _SITUATIONS.strip())
    return tuple(_scale(block.splitlines()) for block in blocks)


def made_levels(rng: np.random.Generator) -> tuple[str, list[Made]]:
    """Return a context that says how much of something there is, and a question on it."""
    adjective = pick(_ADJECTIVES, rng)
    *others, situations = scales()
    draw = rng.random()
    if draw < SITUATION_SHARE:
        scale = situations
    elif draw < SITUATION_SHARE + DEGREE_SHARE:
        scale = _of_degree(adjective)
    else:
        scale = pick(others, rng)
    places = pick(_FEWER, rng)
    right = int(rng.integers(len(places)))
    phrase = pick(scale.phrases[places[right]], rng)
    given = {"n": pick(_NOUNS, rng), "who": pick(_WHO, rng), "i": str(rng.integers(4, 30))}
    sentence = pick(scale.sentences, rng).format(p=phrase.format(**given), **given)
    sentences = [sentence[:1].upper() + sentence[1:]]
    if rng.random() < 0.4:
        sentences.append(pick(_OTHERS, rng).format(**given))
    names = pick(scale.names, rng)
    named = tuple(names[i] for i in places)
    if names[0] == "1":  # numbers have no gaps
        named = names[: len(places)]
    question = pick(scale.questions, rng).format(**given)
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

"""Everyday messages with a question and its opposite, which no rule of training has made.

Training makes many of its yes/no rows by rules, so that a figure on rows of that style says how well
the style was learnt. These were written by hand, in the words of those who write to a business,
and are never trained on. Of each message the first question is answered yes and the second no.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard_base_recipe.behaviour.figures import Answer

#: A line: message | a question answered yes | its opposite, answered no.
_ROWS = """
hi, card got hit 2x for the same order last nite, pls sort it | Was the customer charged more than once? | Was the customer charged just once?
Still nothing in the letterbox, and it's been three weeks!! | Is the parcel overdue? | Did the parcel come on time?
Got it this morning, one day before you promised. Lovely. | Did it arrive early? | Did it arrive late?
I'd rather keep the jacket and get 20 off than send it back. | Does the writer want to keep the item? | Does the writer want to return the item?
The manual is in Korean only and I can't set the clock. | Are the instructions unreadable for the customer? | Can the customer follow the instructions?
Ok that did the trick, light is green again, thank you Sam | Is the problem solved? | Does the problem persist?
I tried your fix twice and the light is red as ever | Does the problem persist? | Is the problem solved?
We're happy to take you up on the quote, please send the papers. | Is the offer accepted? | Is the offer turned down?
After some thought we went with another supplier, sorry. | Is the offer turned down? | Is the offer accepted?
Could u pls take my name off your mailing list | Does the person want fewer mails? | Does the person want to receive the newsletter?
Where do I sign up for the weekly tips? | Does the person want to receive the newsletter? | Does the person want to unsubscribe?
I can't make Thursday, would the week after do? | Does the appointment have to be moved? | Does the appointment stand as agreed?
Thursday 10 is fine, see you then | Does the appointment stand as agreed? | Does the appointment have to be moved?
Flat has a lift and the bathroom door is 95 cm wide. | Is the flat suited to a wheelchair? | Is the flat unsuitable for a wheelchair?
Fourth floor, 72 steps, but what a view! | Does one have to climb stairs? | Is there a lift to the flat?
I'm 16 and my mum says I need her card for this | Is the writer a minor? | Is the writer of age?
Our turnover fell from 4.1 to 3.2 million within a year. | Is the business shrinking? | Is the business growing?
Hired eleven people since May and we are looking for four more. | Is the company growing? | Is the company laying off staff?
The soup was cold and the waiter rolled his eyes when I said so | Is the guest unhappy? | Did the guest enjoy the meal?
We stayed until they closed and have booked again for Sunday. | Did the guests enjoy the evening? | Were the guests disappointed?
The password must have leaked, somebody in Minsk is logged in as me. | Has a stranger got into the account? | Is the account secure?
Invoice 7781 was settled on 2 May, ref attached. | Has the invoice been paid? | Is the invoice still outstanding?
Regarding 7781: the due date passed a month ago and we have not seen a cent. | Is the invoice still outstanding? | Has the invoice been paid?
My contract runs out in June and I shan't renew. | Is the customer leaving? | Does the customer stay on?
Ten years with you and I've just signed for two more. | Does the customer stay on? | Is the customer leaving?
No rush, whenever somebody has a minute. | Can this wait? | Is this urgent?
The basement is filling up as I type, please hurry | Is this urgent? | Can this wait?
You may quote me by name in the article. | Did the person agree to be named? | Does the person want to stay anonymous?
Please leave my name out of the report. | Does the person want to stay anonymous? | Did the person agree to be named?
Took two tablets at noon and the headache was gone by one. | Did the medicine help? | Was the medicine without effect?
A week of the drops and my ear hurts just as much. | Was the medicine without effect? | Did the medicine help?
The patient has smoked a pack a day since 1998. | Is the patient a smoker? | Is the patient a non-smoker?
Gave up cigarettes in 2004 and never looked back. | Is the person a non-smoker now? | Does the person smoke today?
tenant moved out on the 1st, keys are on my desk | Is the flat empty? | Is the flat occupied?
The new family has been in since Saturday and already painted the hall. | Is the flat occupied? | Is the flat empty?
Backup finished 03:12, 0 errors, all 214 files verified. | Did the backup succeed? | Did the backup fail?
backup aborted: disk full after 37 of 214 files | Did the backup fail? | Did the backup succeed?
It only crashes on my old phone; on the new one all is well. | Does it work on the new phone? | Is the new phone affected?
Since the update neither my laptop nor the tablet gets past the logo. | Are several devices affected? | Is a single device affected?
Deal: you send the samples first, we pay afterwards. | Are the samples to come before the payment? | Is the payment to come before the samples?
All seats for Friday are gone, there are some left for Saturday. | Is Friday sold out? | Are there seats left on Friday?
The clause allows either side to leave with a month's notice. | Can both sides end the contract? | Is the tenant bound without a way out?
Neither the seller nor the agent is liable for hidden faults. | Is the seller free of liability? | Must the seller pay for hidden faults?
The warranty covers parts but you pay the engineer. | Does the customer pay for the work? | Is the work free of charge?
gr8 product, my kids fight over it every day lol | Is the review favourable? | Is the review critical?
Save your money. Mine lasted four days. | Is the review critical? | Is the review favourable?
I was born in Graz and have never lived anywhere else. | Does the person live where they were born? | Has the person moved away from their birthplace?
The meeting was in English, but half of us could not follow. | Did some have trouble with the language? | Did everybody understand what was said?
Add no nuts please, my son would need an ambulance. | Does the child have a dangerous allergy? | Can the child eat everything?
We eat anything but my wife does not touch fish. | Does the wife avoid fish? | Does the wife like fish?
The dog bit the postman again, he had to have stitches. | Was somebody hurt? | Was everybody unharmed?
The tree came down right beside the car, not a scratch on it. | Is the car undamaged? | Was the car hit?
He says he will think it over and call on Monday. | Is the decision still open? | Has he decided?
The board voted 7 to 2 for the merger. | Was the merger approved? | Was the merger rejected?
My flight leaves in 40 minutes and I am still in the taxi. | Could the traveller miss the flight? | Does the traveller have plenty of time?
I'm at the gate with two hours to kill. | Does the traveller have plenty of time? | Could the traveller miss the flight?
Your driver left it with my neighbour, got it now. | Does the customer have the parcel? | Is the parcel missing?
Tracking says delivered, but nobody here has seen it. | Is the parcel missing? | Does the customer have the parcel?
Please don't change anything, I like the old layout better. | Does the user prefer the old design? | Does the user prefer the new design?
The new look took me a day to get used to, now I would not go back. | Does the user prefer the new design? | Does the user prefer the old design?
"""


@dataclass(frozen=True, slots=True)
class EverydayFigures:
    """The scores of a model's answers to the questions."""

    #: Of all questions, half of them to be answered yes; the loss in nats.
    accuracy: float
    auc: float
    log_loss: float
    #: Of the messages, the share whose two questions are answered differently.
    flips: float
    #: Of the messages, the share whose first question has the higher probability of yes.
    pairs: float


def everyday_requests() -> list[RenderedRequest]:
    """Return a request for each message, with its two questions."""
    requests = []
    for line in _ROWS.strip().splitlines():
        context, first, second = line.split(" | ")
        decisions = (
            RenderedDecision("binary", question, ("yes", "no")) for question in (first, second)
        )
        requests.append(RenderedRequest(context, tuple(decisions)))
    return requests


def everyday_figures(ask: Callable[[RenderedRequest], Sequence[Answer]]) -> EverydayFigures:
    """Ask the questions and return the figures."""
    yes = np.array([[p[0] for p in ask(request)] for request in everyday_requests()])
    right = np.array([True, False]) == (yes > 0.5)
    likelihood = np.clip(np.stack([yes[:, 0], 1 - yes[:, 1]]), 1e-6, None)
    return EverydayFigures(
        accuracy=float(right.mean()),
        auc=float((yes[:, :1] > yes[:, 1]).mean() + 0.5 * (yes[:, :1] == yes[:, 1]).mean()),
        log_loss=float(-np.log(likelihood).mean()),
        flips=float(((yes[:, 0] > 0.5) != (yes[:, 1] > 0.5)).mean()),
        pairs=float((yes[:, 0] > yes[:, 1]).mean()),
    )

"""Messages to organisations of many kinds, and choices of what they are about.

The sources of the mixture with such choices are few; here their outcomes are named in everyday words,
and what the message says is mostly not in the words of the outcome that it is about.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from steelyard.training.base.records import Made, pick

#: Share of the choices that have an outcome for none of the others, and of these where it is right.
OTHER_SHARE, OTHER_RIGHT = 0.35, 0.08
#: Share of the choices between organisations, not between the intents of one.
ORGANISATIONS_SHARE = 0.2
#: A line: what it is about: messages. An organisation's name stands above its lines.
_MESSAGES = """
# clothes shop
returns: The jacket is going back to you, how do I pack it? ; I changed my mind about the boots and would like to hand them in again
exchange: I do not want my money back, just the same dress in green ; The sleeves are too long, can I swap it for a smaller one?
sizes: I am 1.90 and slim, would a medium do? ; How wide is the belt at the buckle?
stock: Will you have the grey coat again before winter? ; Is the red scarf on the shelf in your shop in Bath?
washing: May the pullover go into the machine? ; The blouse came out of the tumble dryer half as long
gift cards: The balance on the present from my aunt is wrong ; Can I put fifty euros on a card for my niece?
payment methods: Do you take cheques? ; Why can I not use my debit card at the till?
opening hours: Are you there on Sundays? ; Until when can I come by tonight?
# telephone company
no signal: Since the storm I cannot make calls from the cellar ; There is not a single bar on my screen in the whole village
slow internet: A film stops every two minutes ; Pages take ages to load in the evening
bill: Why is it twelve euros more than in March? ; Please tell me what the item "services" on my statement is
new contract: My neighbour has fibre from you and I would like it too ; I am moving out of my parents' flat and need a line of my own
leaving: I have found somebody cheaper, please let me go at the end of the year ; Take this as my notice
roaming: What do calls cost from Norway? ; I am in Brazil next week, will my handset work there?
number transfer: May I keep my old digits when I come to you? ; My code from the other firm is 4711, please bring my number over
lost handset: I left it on the train, please block the card ; Somebody took it out of my bag at the market
voicemail: How do I get rid of the greeting? ; I cannot listen to what callers left me
# bank
new account: My daughter turns 16 and wants her first one ; What papers do I bring to become a customer of yours?
card lost: It must have fallen out of my pocket at the fair ; My purse was stolen with everything in it
unknown debit: There are forty euros gone to a firm that I never heard of ; I never bought anything in Lisbon, and yet it says so
transfer: I sent the rent to the wrong person, can you get it back? ; How long until the money is in Poland?
mortgage: We have seen a house and need three hundred thousand ; Can the rate of our home loan be fixed for twenty years?
savings: Where do I get the most for ten thousand that I will not need for a year? ; What interest does the deposit bring?
cash machine: It kept my notes and showed an error ; Which corner has one where I can draw money on foot?
online access: The page wants a code from an app that I no longer have ; My password is refused three times in a row
standing order: Let the hundred euros go to my son every first of the month ; Please raise what I give to the club each quarter
# hotel
booking: Do you have something for two from Friday on? ; We would like the room with the balcony for a week
cancelling: My mother fell ill and we cannot travel ; Please strike us off for the ninth
breakfast: From when can one eat in the morning? ; Is there something without milk at the buffet?
parking: Where do I leave the car overnight? ; How much is the garage a day?
dirty room: There were hairs in the bath ; Nobody had changed the sheets when we arrived
noise: The bar under our window went on until four ; The lift next to our bed hums all night
lost and found: I must have left my glasses on the bedside table ; A child's bear stayed behind in 204
pets: May our spaniel sleep with us? ; Do you mind a quiet cat?
swimming pool: Is the water heated in October? ; Can children bathe without a grown-up?
# railway
delay: We stood in a field for an hour ; When does the 9:12 get here at last?
tickets: What does a return to York cost for a student? ; I need two singles to the coast
refund: The journey did not happen because of you, so I want to see my fare again ; Pay me what the taxi cost, since the last train did not run
seats: We are five and want to sit together at a table ; Can I have a place by the window?
bicycles: Can I take my bike along without taking it apart? ; How many bikes fit into a coach?
luggage: May I bring a surfboard? ; Is there somebody who carries trunks?
lost property: My umbrella is still in coach 7 ; A red rucksack stayed on the rack, whom do I ask?
wheelchair help: Who lifts my husband's chair over the gap? ; My mother cannot climb the steps into the coach
timetable: When is the last one home on a Saturday? ; How often do they run between eight and ten?
# town hall
passport: My document runs out in May and I fly in June ; Which photograph do you need for travel papers?
moving in: We came here from another town last week, where do we register? ; I have a new flat in Elm Road and must tell you
dog licence: We took in a puppy ; Our old Rex died, so there is nothing more to pay for him
rubbish collection: The men did not empty our bins ; Where can I bring an old fridge?
street lights: It is pitch dark in Castle Lane since Monday ; The lamp before our house flickers all night
potholes: I broke an axle on your road ; There is a crater in front of the school
wedding: We want to say yes in the old castle in August ; What do two foreigners need to marry here?
building permit: May I put a shed behind the house? ; We would like to raise our roof by a metre
kindergarten places: Our son turns three, where can he go in the mornings? ; Is there still room with the Squirrels?
# library
renewal: I have not finished it, may I keep it another fortnight? ; Please give me more time for the three novels
fines: Why do I owe four euros? ; I brought it back late because I was ill, must I pay?
reservation: Put the new one by her aside for me ; Tell me when the atlas is in again
membership: What does a card cost for a pensioner? ; I would like to borrow from you, how do I join?
reading room: Is there a quiet desk with a socket? ; Can four of us meet at a table to study?
damaged book: My dog chewed the cover ; Coffee ran over pages 10 to 30, what now?
story hour: When is somebody reading to the little ones? ; Is the fairy tale morning for two-year-olds too?
printing: How much is a page in colour? ; The copier ate my coin
# car workshop
brakes: It squeals when I stop ; The pedal goes right down to the floor
tyres: I need the winter ones put on ; A nail went into the left front
battery: It will not start in the cold ; After a week of standing not even the radio comes on
oil: There is a black puddle under the engine every morning ; The red can lights up on the panel
bodywork: Somebody scratched my door in the car park ; The bumper hangs down on one side
inspection: The sticker is due in April ; Can you take it to the examiner for me?
courtesy car: How do I get to work while you have mine? ; Do you lend me something for the two days?
estimate: What would it cost to do the clutch? ; Tell me a price before you begin
pick-up time: Is it ready? ; When can I come for my keys?
# office computer help
printer: Sheets come out blank ; It says that there is a jam, but there is none
new employee: Somebody begins on Monday and needs a laptop and a mailbox ; Please set up a desk for Ms Okoro
mail: I do not get anything from outside since ten ; My outbox is full and nothing leaves
password: It expired over the holidays ; I typed it wrong five times and am shut out
screen: There is a green stripe from top to bottom ; The left one stays black
software request: May I have the drawing program? ; Please put the new version of the spreadsheet on my machine
phishing: I clicked on a link that looked like our own page ; A "director" asks me to buy vouchers, is that real?
meeting room: The projector in 3.12 finds no picture ; Nobody could hear us on the call in the big hall
shared folder: I can see it and not write to it ; Who lets me into the drawer of the sales people?
stolen device: My bag with the notebook was taken on the bus ; The company telephone is gone since the party
# insurance
claim: A stone flew into my windscreen ; The cellar is under water and the washing machine is ruined
premium: Why do I pay more this year? ; Can I pay once a year and not each month?
cover question: Would you pay if my bike is stolen at the station? ; Does it include hail?
new policy: I bought a caravan and need something for it ; We are having a baby and want to be safe
ending a policy: I sold the motorbike, so please stop it ; I am going to another company from January on
change of details: I married and my name is now Hart ; Note my new bank details
claim status: Three weeks ago I sent you the photographs, and now? ; Has the expert finished his report on our roof?
certificate: The landlord wants a paper that says I am covered ; Please send me the green card for abroad
# theatre
programme: What is on at Christmas? ; Who sings the lead tonight?
tickets: Two in the stalls for the ninth, please ; Are there any left for the matinee?
subscription: We want the same places for every premiere ; Is there something for ten evenings at once?
cloakroom: Where do we leave our coats? ; My umbrella was handed to somebody else
late arrival: The bus is stuck, will we still be let in? ; May one slip in after the beginning?
accessibility: My father hears badly, is there a device for him? ; Can one get to the balcony without stairs?
guided tours: We would like to see behind the scenes ; Do you show a class of 25 how the stage works?
auditions: I sing alto and would love to join the chorus ; When can young dancers show you what they can do?
lost item: One of my earrings must lie under row 12 ; I forgot my opera glasses on the seat
# delivery kitchen
late order: We have been hungry for an hour and a half ; Where is the boy with our pizza?
wrong dish: I asked for fish and got beef ; There is ham on it, and we eat none
missing drinks: The bag had everything but the lemonade ; Two colas were paid for and none came
cold food: The soup was like from the fridge ; Everything was stone cold when we opened the boxes
allergies: Is there sesame in the sauce? ; My son must not have nuts, what can he eat?
large orders: We are sixty on Thursday, can you do that? ; Feed our whole office at noon, please
praise: Best noodles in town, and what a nice driver ; The dumplings made my week
jobs: I have a scooter and evenings free, do you need anybody? ; I cooked in Hanoi for ten years and look for a kitchen
# newspaper
delivery: It was not in the letter box again ; The boy throws it into the wet hedge
subscription: I would like to get it at weekends only ; Send it to my summer house from July on
correction: You wrote that he is 60, he is 61 ; The woman in the picture is not the minister
letter to the editor: I disagree with what you say on the tunnel, please print this ; Your comment on schools leaves out the parents
advertisement: What does a quarter page cost? ; We want to announce the birth of our twins
news tip: There is smoke over the harbour, do you know? ; I have papers on the mayor that you should see
puzzle: 14 down has no solution ; Where do I send the answer of the crossword?
online account: I pay and still meet the paywall ; The app has thrown me out
"""
_QUESTIONS = (
    "What is the message about?",
    "What is this about?",
    "Which subject does it belong to?",
    "What does the writer write about?",
    "Which topic is it?",
    "Choose what the message is on.",
    "What is it that the writer brings up?",
    "Classify the message.",
    "Who should deal with it: the people for what?",
)
_RECEIVERS = (
    "Which organisation was it written to?",
    "Who is the message for?",
    "Whom did the writer write to?",
    "Where does it belong?",
)
_OTHERS = ("other", "something else", "none of these", "anything else", "general")
_HELLOS = ("Hello!", "Good evening,", "Dear all,", "Hi there.", "Dear Sir or Madam,")
_GOODBYES = ("Thank you.", "Kind regards", "Many thanks in advance!", "Please answer soon.", "Bye.")


@cache
def organisations() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return every organisation with its subjects, and messages on each."""
    by_organisation: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in _MESSAGES.strip().splitlines():
        if line.startswith("# "):
            intents = by_organisation.setdefault(line[2:], {})
            continue
        name, messages = line.split(": ", 1)
        intents[name] = tuple(message.strip() for message in messages.split(" ; "))
    return by_organisation


def made_intent(rng: np.random.Generator) -> tuple[str, list[Made]]:
    """Return a message, and a choice of what it is about, asked in two wordings."""
    names = list(organisations())
    receiver = pick(names, rng)
    about = list(organisations()[receiver])
    right = pick(about, rng)
    text = pick(organisations()[receiver][right], rng)
    text = text if text.endswith(("?", "!")) else f"{text}."
    questions: tuple[str, ...] = _QUESTIONS
    if rng.random() < ORGANISATIONS_SHARE:
        # An organisation that gets messages on the same subject could be right too: leave it out.
        about = [name for name in names if name == receiver or right not in organisations()[name]]
        right, questions = receiver, _RECEIVERS
    others = [name for name in about if name != right]
    others = [others[i] for i in rng.permutation(len(others))[: int(rng.integers(2, 9))]]
    outcomes = [right, *others]
    if rng.random() < OTHER_SHARE:
        if len(outcomes) > 3 and rng.random() < OTHER_RIGHT:
            del outcomes[0]
            right = pick(_OTHERS, rng)
            outcomes.append(right)
        else:
            outcomes.append(pick(_OTHERS, rng))
    order = rng.permutation(len(outcomes))
    shown = tuple(outcomes[i] for i in order)
    if rng.random() < 0.3:
        text = f"{pick(_HELLOS, rng)} {text}"
    if rng.random() < 0.3:
        text = f"{text} {pick(_GOODBYES, rng)}"
    chosen = rng.permutation(len(questions))[:2]
    return text, [Made("single", questions[i], shown, shown.index(right)) for i in chosen]

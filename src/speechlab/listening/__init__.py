"""Listening tests as data: their material, questions and key, and the answers of listeners as one table.

A test is planned here, shown by ``widgets``, and read by ``evaluate``. Its two files have one format, the models
``ListeningKey`` and ``AnswerFile``, by which they are both written and read. The room makes no sound and shows
nothing. People reach it through :class:`speechlab.widgets.ListeningTest` and :func:`speechlab.evaluate.listening`.
"""

from __future__ import annotations

from speechlab.listening._answers import COLUMNS as COLUMNS
from speechlab.listening._answers import HIDDEN_REFERENCE_LEAST as HIDDEN_REFERENCE_LEAST
from speechlab.listening._answers import read_key as read_key
from speechlab.listening._answers import scores_of_systems as scores_of_systems
from speechlab.listening._answers import tidy_answers as tidy_answers
from speechlab.listening._files import AnswerFile as AnswerFile
from speechlab.listening._files import KeyTrial as KeyTrial
from speechlab.listening._files import ListeningKey as ListeningKey
from speechlab.listening._files import parse as parse
from speechlab.listening._material import checked_words as checked_words
from speechlab.listening._material import chosen_pairs as chosen_pairs
from speechlab.listening._material import design_of as design_of
from speechlab.listening._material import instructions_of as instructions_of
from speechlab.listening._material import material_of as material_of
from speechlab.listening._material import page_words as page_words
from speechlab.listening._material import training_of as training_of
from speechlab.listening._questions import ANCHORS_HZ as ANCHORS_HZ
from speechlab.listening._questions import METHODS as METHODS
from speechlab.listening._questions import Planner as Planner
from speechlab.listening._questions import Stimulus as Stimulus
from speechlab.listening._questions import check_count as check_count
from speechlab.listening._scale import pair_scale as pair_scale

"""Listening tests as data: their material, questions and key, and the answers of listeners as one table.

A test is planned here, shown by ``widgets``, and read by ``evaluate``. Its two files have one format, the models
``ListeningKey`` and ``AnswerFile``, by which they are both written and read. The room makes no sound and shows
nothing. People reach it through :class:`speechlab.widgets.ListeningTest` and :func:`speechlab.evaluate.listening`.
"""

from __future__ import annotations

from speechlab.listening._answers import COLUMNS as COLUMNS
from speechlab.listening._answers import HIDDEN_REFERENCE_LEAST as HIDDEN_REFERENCE_LEAST
from speechlab.listening._answers import build_answer_table as build_answer_table
from speechlab.listening._answers import to_answers_by_system as to_answers_by_system
from speechlab.listening._answers import to_listening_key as to_listening_key
from speechlab.listening._files import AnswerFile as AnswerFile
from speechlab.listening._files import KeyTrial as KeyTrial
from speechlab.listening._files import ListeningKey as ListeningKey
from speechlab.listening._files import parse_model as parse_model
from speechlab.listening._material import build_design as build_design
from speechlab.listening._material import build_instructions as build_instructions
from speechlab.listening._material import build_material as build_material
from speechlab.listening._material import check_system_pairs as check_system_pairs
from speechlab.listening._material import check_text as check_text
from speechlab.listening._material import choose_training_items as choose_training_items
from speechlab.listening._material import load_page_words as load_page_words
from speechlab.listening._questions import ANCHORS_HZ as ANCHORS_HZ
from speechlab.listening._questions import METHODS as METHODS
from speechlab.listening._questions import Planner as Planner
from speechlab.listening._questions import Stimulus as Stimulus
from speechlab.listening._questions import check_question_count as check_question_count
from speechlab.listening._scale import estimate_pair_scale as estimate_pair_scale

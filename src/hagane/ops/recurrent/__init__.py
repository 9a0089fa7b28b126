"""Recurrent layers: RNN, GRU, LSTM."""

from hagane.ops.recurrent import gru, lstm, rnn, steps

OPERATORS = (*gru.OPERATORS, *lstm.OPERATORS, *rnn.OPERATORS, *steps.OPERATORS)

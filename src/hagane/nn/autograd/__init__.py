"""Variables, and the recording and differentiation of computations on them."""

"""A program that launches the visualizer as one for ChainerRL does; its port is the argument."""

import sys
import threading
import webbrowser

from hagane.rl import launch_visualizer
from tests.tools.rl.agents import Balancer


class World:
    """A world of somebody's own: a lean that grows."""

    def reset(self):
        self.lean = 0.1
        return [0.0, 0.0, self.lean, 0.0]

    def step(self, action):
        self.lean *= -1.1
        return [0.0, 0.0, self.lean, 0.0], 1.0, abs(self.lean) > 0.3, {}

    def render(self):
        import numpy

        return numpy.full((8, 8, 3), int(abs(self.lean) * 255), numpy.uint8)


webbrowser.open_new_tab = lambda address: True
if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    launch_visualizer(Balancer(), World(), {0: "left", 1: "right"}, log_dir=sys.argv[1], port=0)

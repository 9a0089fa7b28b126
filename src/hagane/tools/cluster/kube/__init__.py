"""The kube-scheduler, rebuilt: filters, scores, preemption and the queue before them."""

"""Worker processes that make batches in shared memory: the pool, its workers, their memory."""

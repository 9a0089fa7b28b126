"""Pictures: sampled between pixels, pooled by regions and windows of any rank."""

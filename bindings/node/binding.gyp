{
  "targets": [
    {
      "target_name": "hagane",
      "sources": ["addon.c"],
      "cflags": ["-std=gnu11", "-Wall", "-Wextra"],
      "libraries": ["-ldl"]
    }
  ]
}

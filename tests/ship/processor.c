/* Open builds of which only one is for this processor: the last. */
#include <hagane.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **folders) {
  for (int i = 1; i < count; i++) {
    hagane_model *model = (hagane_model *)&model;
    int32_t code = hagane_open(folders[i], NULL, &model);
    if ((code == HAGANE_OK) != (i == count - 1) || (model != NULL) != (code == HAGANE_OK)) return 1;
    if (code != HAGANE_OK && code != HAGANE_CPU) return 2;
    puts(code == HAGANE_OK ? "open" : hagane_message());
    hagane_close(model);
  }
  return 0;
}

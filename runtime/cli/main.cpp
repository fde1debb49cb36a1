#include "runtime/cli/cli.h"

int main(int argc, char** argv) { return krait::cli(argc, argv); }

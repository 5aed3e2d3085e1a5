/* SPDX-License-Identifier: Apache-2.0 */
/* Where the committed models are. */
#ifndef HOST_CLI_ZOO_H
#define HOST_CLI_ZOO_H

/* The folder of the zoo: $MILLRACE_ZOO, or models/zoo beside or above the command. NULL with a
 * message printed when there is none. Owned by the caller. */
char *cli_zoo_folder(void);

/* The path of the model that is run by default, named in the zoo's file `default`. */
char *cli_zoo_default(void);

/* A committed folder beside the command: IN_TREE where the command is in the tree or in build/,
 * share/millrace/INSTALLED where it is installed. NULL: neither is there. Owned by the caller. */
char *cli_beside_command(const char *in_tree, const char *installed);

/* FOLDER/NAME, owned by the caller. */
char *cli_join(const char *folder, const char *name);

#endif

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** File of the root of a copy, at which git stops. It would look for a repository above otherwise. */
export const COPY_MARK = '.git';
const MARK = 'This folder is a copy of the files of a workspace, and no repository.\n';
/** A repository around the folder of all copies ignores them, as it does a virtual environment. */
const IGNORE_FILE = '.gitignore';
const IGNORE_ALL = '# Copies of the files of workspaces\n*\n';

const writeOnce = async (path: string, text: string): Promise<void> => {
  await writeFile(path, text, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    // A person may have made a repository here, which stays.
    if (error.code !== 'EEXIST') throw error;
  });
};

/** Marks the root of a copy, so that git takes it for no repository. */
export const markCopy = (root: string): Promise<void> => writeOnce(join(root, COPY_MARK), MARK);

/** Marks the folder of all copies, so that a repository around it does not take it in. */
export const ignoreCopies = (folder: string): Promise<void> =>
  writeOnce(join(folder, IGNORE_FILE), IGNORE_ALL);

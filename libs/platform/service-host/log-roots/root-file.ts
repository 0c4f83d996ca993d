import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { SignedLogRoot } from '@antiphon/event-store';

/** Adds a root as one line of JSON, and has it on the disk before it answers. */
export const appendRoot = async (file: string, root: SignedLogRoot): Promise<void> => {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, 'a', 0o644);
  try {
    await handle.appendFile(`${JSON.stringify(root)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
};

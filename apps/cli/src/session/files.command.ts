import type { Command } from 'commander';
import { invalid } from '@antiphon/kernel';
import type { ContextOf } from '../output.js';
import type { BrowseOptions, PutOptions } from './browse-files.js';
import type { EraseOptions } from './erase-files.js';
import type { ExportOptions, VerifyOptions } from './export-files.js';
import type { RestoreFilesOptions } from './restore-files.js';

const addRestore = (files: Command, context: ContextOf): void => {
  files
    .command('restore [path]')
    .description("restore a file from the bin or a version, or take back a session's changes of files")
    .option('--from <n>', 'the version of the tree that has the file; default: the newest one in the bin')
    .option('--workspace <id>', 'the workspace of the path', 'default')
    .option('--session <id>', 'the session whose changes are taken back')
    .option('--at <n>', 'keep the changes up to the event with this version; 0 keeps none')
    .option('--dry-run', 'only print what would change')
    .option('--key <key>', 'an idempotency key: requests with the same key restore once')
    .addHelpText(
      'after',
      '\nNewer changes of others stay and are listed. Deleted files go to the bin.\n\nExamples:\n  antiphon files restore docs/plan.md\n  antiphon files restore docs/plan.md --from 12\n  antiphon files restore --session 0d6c… --at 12 --dry-run\n  antiphon files restore --session 0d6c… --at 12',
    )
    .action(async (path: string | undefined, options: RestoreOptions, command: Command) => {
      const { session, at } = options;
      if (path !== undefined)
        return (await import('./browse-files.js')).restoreFile(context(command), path, options);
      if (session === undefined || at === undefined)
        throw invalid('CLI.USAGE', 'expected a path, or --session and --at');
      return (await import('./restore-files.js')).restoreFiles(context(command), { ...options, session, at });
    });
};

type RestoreOptions = Partial<RestoreFilesOptions> & BrowseOptions & { readonly from?: string };

const browse = (files: Command, name: string, description: string, example: string): Command =>
  files
    .command(name)
    .description(description)
    .option('--workspace <id>', 'the workspace', 'default')
    .option('--session <id>', 'a forked session, which has a tree of its own')
    .addHelpText('after', `\nExamples:\n  antiphon files ${example}`);

const addBrowsing = (files: Command, context: ContextOf): void => {
  browse(files, 'ls [folder]', 'list files and folders', 'ls docs\n  antiphon files ls --recursive --at 12')
    .option('--recursive', 'list files of all levels')
    .option('--bin', 'list deleted files')
    .option('--at <n>', 'the version of the tree')
    .action(async (folder: string | undefined, options: BrowseOptions, command: Command) =>
      (await import('./browse-files.js')).listFolder(context(command), folder ?? '', options),
    );
  browse(files, 'cat <path>', 'print a file', 'cat docs/plan.md\n  antiphon files cat docs/plan.md --at 12')
    .option('--at <n>', 'the version of the tree')
    .action(async (path: string, options: BrowseOptions, command: Command) =>
      (await import('./browse-files.js')).printFile(context(command), path, options),
    );
  browse(files, 'history [path]', 'show the changes of files and their causes', 'history src/app.ts')
    .option('--limit <n>', 'the number of changes', '50')
    .action(async (path: string | undefined, options: BrowseOptions, command: Command) =>
      (await import('./browse-files.js')).showHistory(context(command), path ?? '', options),
    );
  browse(
    files,
    'diff <path>',
    'show how a file changed from a version to another, as a unified diff',
    'diff src/app.ts --from 3 --to 9',
  )
    .requiredOption('--from <n>', 'the earlier version of the tree')
    .option('--to <n>', 'the later version; default: the newest')
    .action(async (path: string, options: BrowseOptions, command: Command) =>
      (await import('./diff-files.js')).showDiff(context(command), path, options),
    );
  browse(
    files,
    'export',
    'write files and a list of their digests to a new folder or tar',
    'export --out backup --at 12\n  antiphon files export --out site.tar --proof',
  )
    .requiredOption('--out <path>', 'a folder, or a file that ends in .tar; it must not exist')
    .option('--at <n>', 'the version of the tree; default: the newest')
    .option('--proof', 'also write the proof that the signed log has these files')
    .option('--roots <file>', 'signed roots (default: those of this home)')
    .option('--key <file>', 'Ed25519 key of the roots, PEM (default: that of this home)')
    .option('--archives <folder>', 'the folder of archive files (default: as for `antiphon events archive`)')
    .action(async (options: ExportOptions, command: Command) =>
      (await import('./export-files.js')).exportFiles(context(command), options),
    );
  files
    .command('verify <tar>')
    .description('verify an exported tar and its proof offline, with the public key alone')
    .option('--key <file>', 'Ed25519 public key, PEM (default: that of this home)')
    .option('--roots <file>', 'a copy of the signed roots, which must contain the root of the proof')
    .addHelpText('after', '\nExamples:\n  antiphon files verify site.tar --key log-signing.pub')
    .action(async (tar: string, options: VerifyOptions, command: Command) =>
      (await import('./export-files.js')).verifyExport(context(command), tar, options),
    );
};

const addErase = (files: Command, context: ContextOf): void => {
  files
    .command('erase [path]')
    .description('erase the bytes of a file for ever, in all versions; needs the role operator')
    .option('--at <n>', 'only those of this version of the tree')
    .option('--digest <digest>', 'only the bytes with this SHA-256, instead of a path')
    .option('--reason <text>', 'the reason, which the log records')
    .option('--workspace <id>', 'the workspace', 'default')
    .option('--session <id>', 'a forked session, which has a tree of its own')
    .addHelpText(
      'after',
      '\nThe history stays. Texts in turns, previews of approvals and older backups stay too.\n\nExamples:\n  antiphon files erase docs/people.csv --reason "personal data"\n  antiphon files erase --digest 9f86d0…',
    )
    .action(async (path: string | undefined, options: EraseOptions, command: Command) =>
      (await import('./erase-files.js')).eraseFile(context(command), path, options),
    );
};

/** Declares `antiphon files`. */
export const addFiles = (program: Command, context: ContextOf): void => {
  const files = program
    .command('files')
    .description('list, read, write, compare, restore and export the files of a workspace');
  addBrowsing(files, context);
  browse(files, 'put <file> <path>', 'write a file of this machine', 'put report.pdf docs/report.pdf')
    .option('--expect <digest>', 'the digest of the file before; none if there must be none')
    .action(async (file: string, path: string, options: PutOptions, command: Command) =>
      (await import('./browse-files.js')).putFile(context(command), file, path, options),
    );
  addRestore(files, context);
  addErase(files, context);
};

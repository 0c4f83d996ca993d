import { foldCase, foldersOf } from './file-path.js';

/**
 * Names that programs next to us obey as soon as a person opens or enters the folder. Such programs
 * are version control, shells, editors, package managers, assistants and desktops. No agent and no
 * client may create them, and none is written to the copy on disk. Files that run only on a command
 * of a person, such as `Makefile` and `package.json`, are not in the list.
 */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'version control': [
    ...['.git', '.gitmodules', '.gitattributes', '.gitconfig', '.lfsconfig', '.githooks', '.husky'],
    ...['.hg', '.hgrc', '.hgsub', '.svn', '.bzr', '.jj', '.sl', '.pijul', '_darcs', '.fslckout', '_fossil_'],
    ...['.pre-commit-config.yaml', '.pre-commit-config.yml', 'lefthook.yml', 'lefthook.yaml'],
    ...[
      '.lefthook.yml',
      '.lefthook.yaml',
      'lefthook.toml',
      'lefthook.json',
      '.lefthook',
      '.lefthook-local.yml',
    ],
    ...['lefthook-local.yml', '.overcommit.yml'],
  ],
  'a shell': [
    ...['.envrc', '.direnv', '.direnvrc', '.autoenv', '.autoenv.zsh', '.mise', '.mise.toml', 'mise.toml'],
    ...['.mise.local.toml', 'mise.local.toml', '.rtx.toml'],
    ...['.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.bash_aliases', '.profile', '.login'],
    ...['.logout', '.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.kshrc', '.cshrc', '.tcshrc'],
    ...['.mkshrc', '.shrc', '.xprofile', '.xinitrc', '.xsession', '.inputrc', '.tmux.conf', '.screenrc'],
    ...['.ssh', '.gnupg', '.netrc'],
  ],
  'an editor': [
    ...['.vscode', '.vscode-server', '.idea', '.fleet', '.vs', '.zed', '.nova', '.theia', '.devcontainer'],
    ...['.devcontainer.json', '.gitpod.yml', '.vimrc', '.gvimrc', '.exrc', '.nvimrc', '.nvim.lua', '.vim'],
    ...['.nvim', '.lvimrc', '.local.vimrc', '.ideavimrc', '.emacs', '.emacs.d', '.dir-locals.el'],
    ...['.dir-locals-2.el', '.projectile', '.helix', '.kateproject'],
  ],
  'a package manager or runtime': [
    ...['.npmrc', '.yarn', '.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs', '.pnpmfile.mjs', '.pnp.cjs'],
    ...['.pnp.loader.mjs', 'bunfig.toml', '.bundle', '.cargo', '.mvn', '.bazelrc', '.rprofile', '.renviron'],
    ...['.gdbinit', '.lldbinit', '.pdbrc', '.pythonrc', '.pythonstartup', '.irbrc', '.pryrc', '.psqlrc'],
    ...['.sqliterc', '.octaverc'],
  ],
  'an assistant': [
    ...['.mcp.json', '.claude', '.claude.json', '.cursor', '.windsurf', '.codeium', '.gemini', '.codex'],
    ...['.continue', '.roo', '.cline', '.kiro', '.amazonq', '.opencode', 'opencode.json', 'opencode.jsonc'],
    ...['.aider.conf.yml', '.junie', '.augment', '.goose', '.trae', '.qwen', '.zencoder', '.copilot'],
  ],
  'a desktop': ['desktop.ini', 'autorun.inf', '.directory', 'folder.htt'],
};

/** Endings of files that an editor or a desktop opens, or reads for the view of a folder. */
const ENDINGS: Readonly<Record<string, readonly string[]>> = {
  'an editor': ['.code-workspace', '.sublime-project', '.sublime-workspace'],
  'a desktop': ['.lnk', '.scf', '.library-ms', '.search-ms', '.searchconnector-ms', '.desktop'],
};

const PROGRAM_OF_NAME: ReadonlyMap<string, string> = new Map(
  Object.entries(NAMES).flatMap(([program, names]) => names.map((name) => [name, program] as const)),
);
const PROGRAM_OF_ENDING = Object.entries(ENDINGS).flatMap(([program, endings]) =>
  endings.map((ending) => [ending, program] as const),
);

/** Characters that a file system ignores in a name: `.g\u200cit` is `.git` to HFS+. */
const IGNORED = /[\u200c\u200d\ufe00-\ufe0f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0]/gu;
/** Short names that Windows gives to `.git`, `.gitmodules` and `.gitattributes`. */
const SHORT_NAME = /^(?:git|gitmod|gitatt|gi[0-9a-f]{4})~[0-9]{1,3}$/;

/** Removes spaces and dots at the end, which Windows ignores. */
const trimEnding = (name: string): string => {
  let end = name.length;
  while (end > 0 && (name[end - 1] === '.' || name[end - 1]?.trim() === '')) end--;
  return name.slice(0, end);
};

/** Returns the name as the most lenient file system compares it. */
const foldName = (part: string): string =>
  trimEnding(foldCase(part.replace(IGNORED, '')).replace(IGNORED, ''));

/** Names that git looks for in a folder to decide that it is a repository, and those that it obeys. */
const REPOSITORY_PARTS = ['head', 'commondir', 'config', 'config.worktree', 'hooks', 'objects', 'refs'];
const isRepositoryPart: ReadonlySet<string> = new Set(REPOSITORY_PARTS);

/** Returns the program to which a name of a file or folder has a meaning; null for any other name. */
export const programOfName = (part: string): string | null => {
  const name = foldName(part);
  if (SHORT_NAME.test(name)) return 'version control';
  const known = PROGRAM_OF_NAME.get(name);
  if (known !== undefined) return known;
  // Another form of such a name is not found among the names of a tree.
  if (isRepositoryPart.has(name) && foldCase(part) !== name) return 'version control';
  return PROGRAM_OF_ENDING.find(([ending]) => name.endsWith(ending))?.[1] ?? null;
};

/** Returns the first part of a path that has a meaning to a program, with the program. */
export const unsafePartOf = (path: string): { readonly part: string; readonly program: string } | null => {
  for (const part of path.split('/')) {
    const program = programOfName(part);
    if (program !== null) return { part, program };
  }
  return null;
};

/**
 * Returns true if git treats a folder with these names as a repository, without a folder `.git`. It
 * has `HEAD`, and both `objects` and `refs` or a reference to another folder that has them.
 */
export const isBareRepository = (has: (name: string) => boolean): boolean =>
  has('head') && (has('commondir') || (has('objects') && has('refs')));

/** Returns true for the name of an entry that makes its folder a repository. */
export const isPartOfRepository = (name: string): boolean => isRepositoryPart.has(foldName(name));

/** Names of a tree, by their folded case. */
type Names = ReadonlyMap<string, unknown>;

/** Returns the folder above a path that is a bare repository; null if none is. The root is ''. */
export const repositoryAbove = (path: string, names: Names): string | null => {
  for (const folder of ['', ...foldersOf(path)]) {
    const prefix = folder === '' ? '' : `${foldCase(folder)}/`;
    const rest = path.slice(folder === '' ? 0 : folder.length + 1);
    const [first = ''] = rest.split('/');
    if (isPartOfRepository(first) && isBareRepository((name) => names.has(prefix + name))) return folder;
  }
  return null;
};

/** Returns true if a file is no part of a bare repository. Most trees have no file `HEAD` at all. */
export const outsideRepositories = (names: ReadonlyMap<string, unknown>): ((path: string) => boolean) => {
  const hasHead = [...names.keys()].some((name) => name === 'head' || name.endsWith('/head'));
  return hasHead ? (path) => repositoryAbove(path, names) === null : () => true;
};

/** Prefix of the files of roles. */
export const ROLE_FOLDER = 'system/agents';

/** Returns the role that a file defines; null for another file. */
export const roleOfPath = (path: string): string | null =>
  /^system\/agents\/([^/]+)\.md$/.exec(path)?.[1] ?? null;

/** Values of the front matter that a form can show, by their keys. */
export const ROLE_TEXTS = ['name', 'description', 'base', 'provider', 'model'] as const;
export type RoleSettings = { readonly [K in (typeof ROLE_TEXTS)[number]]?: string | undefined } & {
  readonly tools?: readonly string[] | undefined;
};

export interface RoleFile {
  readonly settings: RoleSettings;
  readonly prompt: string;
  /** First line of the front matter that a form cannot show; null if it can show all of them. */
  readonly unknown: string | null;
}

const OPENING = /^\uFEFF?---[ \t]*\r?\n/;
const CLOSING = /^---[ \t]*(?:\r?\n|$)/m;
const LINE = /^([a-z]{1,20}):(.*)$/;
/** Characters with which YAML begins something else than a plain text, and ends one. */
const NO_PLAIN = /^[-?:,[\]{}#&*!|>'"%@`]|: |:$| #|^(?:true|false|null|yes|no|on|off|~)$|^[-+.\d]/i;

/** Returns a text of one line: plain, or in double quotes as JSON has them. Null for other forms. */
const readScalar = (text: string): string | null => {
  if (!text.startsWith('"')) return NO_PLAIN.test(text) ? null : text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
};

const readNames = (text: string): readonly string[] | null => {
  if (!text.startsWith('[') || !text.endsWith(']')) return null;
  const inner = text.slice(1, -1).trim();
  if (inner === '') return [];
  const names = inner.split(',').map((name) => readScalar(name.trim()));
  return names.every((name) => name !== null && name !== '') ? (names as string[]) : null;
};

/** Reads one line of the front matter into `settings`. Returns false for a line that has no field. */
const readLine = (line: string, settings: Record<string, unknown>): boolean => {
  const [, key = '', rest = ''] = LINE.exec(line) ?? [];
  if (Object.hasOwn(settings, key)) return false;
  const isText = (ROLE_TEXTS as readonly string[]).includes(key);
  const value = isText ? readScalar(rest.trim()) : key === 'tools' ? readNames(rest.trim()) : null;
  if (value === null || value === '') return false;
  settings[key] = value;
  return true;
};

/** Splits the file of a role into its settings and its prompt, as the runtime does. */
export const readRoleFile = (text: string): RoleFile => {
  const start = OPENING.exec(text)?.[0].length ?? 0;
  const closing = start === 0 ? null : CLOSING.exec(text.slice(start));
  if (!closing) return { settings: {}, prompt: text, unknown: null };
  const lines = text.slice(start, start + closing.index).split(/\r?\n/);
  const settings: Record<string, unknown> = {};
  let unknown: string | null = null;
  for (const line of lines) if (line.trim() !== '' && !readLine(line, settings)) unknown ??= line;
  const prompt = text.slice(start + closing.index + closing[0].length).trimStart();
  return { settings: settings as RoleSettings, prompt, unknown };
};

const writeScalar = (text: string): string =>
  NO_PLAIN.test(text) || text !== text.trim() || /\p{Cc}/u.test(text) ? JSON.stringify(text) : text;
const writeName = (name: string): string =>
  /[,[\]{}]/.test(name) ? JSON.stringify(name) : writeScalar(name);

/** Returns the text of a role's file. Settings without a text are left out. */
export const writeRoleFile = ({ settings, prompt }: Pick<RoleFile, 'settings' | 'prompt'>): string => {
  const { tools } = settings;
  const lines = [
    ...ROLE_TEXTS.flatMap((key) => (settings[key] ? [`${key}: ${writeScalar(settings[key])}`] : [])),
    ...(tools === undefined ? [] : [`tools: [${tools.map(writeName).join(', ')}]`]),
  ];
  return lines.length === 0 ? prompt : `---\n${lines.join('\n')}\n---\n\n${prompt}`;
};

type Path = Readonly<Record<'path', string>>;

/** Fields of the causes of files and plans. */
export interface FileFields {
  /** `problem` is one of `PATH_PROBLEMS`. `detail` is the part, the limit or empty. */
  file_path_refused: Path & Readonly<Record<'problem' | 'detail', string>>;
  file_path_not_nfc: unknown;
  file_path_empty: unknown;
  file_missing: Path;
  file_named_otherwise: Path & { readonly other: string };
  folder_missing: Path;
  file_not_in_bin: Path;
  file_is_folder: Path;
  folder_into_itself: Path;
  folder_to_confirm: Path & Readonly<Record<'files' | 'size', number>>;
  folder_has_other_files: Path & Readonly<Record<'files' | 'given', number>>;
  file_exists: Path;
  file_changed: Path;
  /** `diff` describes the change since the session read the file. */
  file_changed_since: Path & { readonly diff: string };
  file_changed_on_disk: Path;
  file_unread: Path;
  file_read_in_part: Path;
  file_virtual: Path;
  file_name_clash: Path & { readonly other: string };
  file_not_folder: Path;
  file_not_plain: Path;
  file_name_obeyed: Path & Readonly<Record<'part' | 'program', string>>;
  file_makes_repository: Path & { readonly folder: string };
  file_too_large: Path & Readonly<Record<'bytes' | 'max', number>>;
  /** An image or a document that models cannot get. `problem` is one of `MEDIA_PROBLEMS`. */
  media_refused: Path & { readonly problem: string; readonly detail: string | number };
  file_quota: { readonly quota: string } & Readonly<Record<'value' | 'limit', number>>;
  file_bytes_erased: { readonly digest: string };
  file_bytes_missing: { readonly digest: string };
  file_version_missing: Readonly<Record<'versions' | 'version', number>>;
  files_too_busy: unknown;
  agent_state_protected: Path & { readonly folder: string };
  chats_not_readable: Path;
  file_outside_roots: Path & Readonly<Record<'use' | 'roots', string>>;
  move_not_readable: Path & { readonly to: string };

  /** `name` is the field of the edit with half of a character pair. */
  edit_not_well_formed: { readonly name: string };
  edit_of_nothing: unknown;
  edit_equal: unknown;
  edit_ambiguous: { readonly lines: string; readonly hasMore: number };
  edit_removes_most: Path & Readonly<Record<'removed' | 'lines', number>>;
  /** Text that differs only in `differs`, some of `DIFFERENCES`, which may be none. */
  edit_near_equal: Readonly<Record<'differs' | 'lines', string>>;
  edit_near_lines: { readonly shown: string };
  edit_near_nothing: unknown;
  edit_not_compared: unknown;
  search_not_re2: { readonly problem: string };
  work_too_long: { readonly deadlineMs: number };
  work_too_large: unknown;

  plan_missing: Path;
  plan_exists: Path;
  plan_without_steps: unknown;
  plan_too_large: Readonly<Record<'steps' | 'chars', number>>;
  plan_step_missing: Readonly<Record<'stepId' | 'steps', string>>;
  plan_step_done: { readonly stepId: string };
  plan_running: unknown;
  plan_done: unknown;
  plan_of_fork: unknown;
  plan_without_tool: { readonly agentId: string };
  agent_not_living: { readonly agentId: string };
  plan_without_evidence: unknown;
}

/** Texts of the problems of a path. */
const PATH_PROBLEMS: Readonly<Record<string, (detail: string) => string>> = {
  absolute: () => 'it is absolute; paths begin at the root of the workspace',
  home: () => 'it begins with ~',
  too_long: (max) => `it has over ${max} bytes`,
  empty_part: () => 'it has an empty part',
  dots: (part) => `it has the part "${part}"`,
  invisible: () => 'it has a control or invisible character',
  reserved: () => 'it has one of \\ < > : " | ? *',
  encoded: () => 'it has a percent-encoded dot, slash or zero',
  blank_end: () => 'a part begins with a space, or ends with a space or a dot',
  device: () => 'a part is the name of a device',
  part_too_long: (max) => `a part has over ${max} bytes`,
  other_form: () => 'it has another form of a dot or slash',
};

const MEDIA_PROBLEMS: Readonly<Record<string, (detail: string | number) => string>> = {
  damaged: (format) => `its header is not one of ${format}. What to do: save it again`,
  unreadable: () => 'it is damaged, or needs a password. What to do: save it again without one',
  encrypted: () => 'it needs a password. What to do: save it again without one',
  old_format: () => 'its text cannot be read. What to do: save it as .docx, .xlsx or .pptx',
  unpacked_too_large: (max) => `it has over ${max} bytes of text, unpacked. What to do: split it`,
  too_many_parts: (max) => `it has over ${max} parts. What to do: split it`,
  too_large: (max) => `it has over ${max} bytes. What to do: make it smaller`,
  too_many_pixels: (max) => `a side has over ${max} pixels. What to do: make it smaller`,
  too_many_pages: (max) => `it has over ${max} pages. What to do: split it`,
  no_image: () => 'it is no PNG, JPEG, WebP or GIF. What to do: send it as a file',
  too_slow: () => 'reading it takes too long. What to do: split it, or save it again',
};

/** Texts of differences that a reader of a file does not see. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  line_endings: 'line endings (the file has CRLF where `old` has LF, or the reverse)',
  line_ends: 'space at the end of a line',
  indentation: 'tabs and spaces of the indentation',
  white_space: 'the width of white space',
  unicode_form: 'the Unicode form (NFC or NFD)',
  byte_order_mark: 'the byte order mark',
  quotes: 'the form of quotes, dashes or spaces',
  capitals: 'capital letters',
};

const differencesOf = (names: string): string =>
  names === ''
    ? 'the text before or after whole lines'
    : names
        .split(', ')
        .map((name) => DIFFERENCES[name] ?? name)
        .join(', ');

/** Texts of the causes of files and plans. */
export const FILE_TEXTS: { readonly [K in keyof FileFields]: (fields: FileFields[K]) => string } = {
  file_path_refused: ({ path, problem, detail }) =>
    `the path ${JSON.stringify(path)} is not allowed: ${PATH_PROBLEMS[problem]?.(detail) ?? problem}`,
  file_path_not_nfc: () => 'the path is not in the form NFC',
  file_path_empty: () => 'the path is empty',
  file_missing: ({ path }) => `there is no file "${path}"`,
  file_named_otherwise: ({ path, other }) => `there is no file "${path}"; there is "${other}"`,
  folder_missing: ({ path }) => `there is no folder "${path}"`,
  file_not_in_bin: ({ path }) => `there is no file "${path}" in the bin`,
  file_is_folder: ({ path }) => `"${path}" is a folder`,
  folder_into_itself: ({ path }) => `the folder "${path}" cannot move into itself`,
  folder_to_confirm: ({ path, files, size }) =>
    `"${path}" is a folder of ${files} files and ${size} bytes; to remove it, repeat with "files": ${files}`,
  folder_has_other_files: ({ path, files, given }) => `the folder "${path}" has ${files} files, not ${given}`,
  file_exists: ({ path }) => `the file "${path}" exists`,
  file_changed: ({ path }) => `the file "${path}" changed after it was read; read it again`,
  file_changed_since: ({ path, diff }) =>
    `"${path}" changed after it was read; read it again. The change:\n${diff}`,
  file_changed_on_disk: ({ path }) => `the file ${path} changed on the disk`,
  file_unread: ({ path }) => `"${path}" exists; read it before you change it`,
  file_read_in_part: ({ path }) => `only a part of "${path}" was read; read all of it, or use edit`,
  file_virtual: ({ path }) => `"${path}" is built on read; a chat changes by its messages`,
  file_name_clash: ({ path, other }) => `"${path}" clashes with "${other}", which differs in case or form`,
  file_not_folder: ({ path }) => `"${path}" is a file, and no folder`,
  file_not_plain: ({ path }) => `${path} or a folder of it is a link, a hard link or a special file`,
  file_name_obeyed: ({ path, part, program }) =>
    `"${path}" is not allowed: "${part}" is a name that ${program} obeys without being asked`,
  file_makes_repository: ({ path, folder }) =>
    `"${path}" is not allowed: with it, git takes the folder "${folder || '.'}" for a repository`,
  file_too_large: ({ path, bytes, max }) => `"${path}" has ${bytes} bytes; a file has at most ${max}`,
  media_refused: ({ path, problem, detail }) =>
    `"${path}" cannot be sent to a model: ${MEDIA_PROBLEMS[problem]?.(detail) ?? problem}`,
  file_quota: ({ quota, value, limit }) => `the workspace would have ${value} of ${quota} = ${limit}`,
  file_bytes_erased: ({ digest }) => `the bytes of ${digest} were erased`,
  file_bytes_missing: ({ digest }) => `the bytes of ${digest} are not stored, or have another size`,
  file_version_missing: ({ versions, version }) => `the tree has ${versions} versions, not ${version}`,
  files_too_busy: () => 'the files change too fast; try again',
  agent_state_protected: ({ path, folder }) =>
    `no agent may change "${path}": ${folder}/ has the instructions of agents, which people change`,
  chats_not_readable: ({ path }) =>
    `the agent may not read "${path}": set read_chats in its configuration for chats`,
  file_outside_roots: ({ path, use, roots }) =>
    `the agent may not ${use} "${path}"; it may ${use} ${roots || 'nothing'}`,
  move_not_readable: ({ path, to }) =>
    `the agent may not read "${path}", so it may not move it to "${to}", where it could`,

  edit_not_well_formed: ({ name }) => `\`${name}\` has half of a character pair`,
  edit_of_nothing: () => '`old` is empty',
  edit_equal: () => '`old` and `new` are equal',
  edit_ambiguous: ({ lines, hasMore }) =>
    `\`old\` occurs at the lines ${lines}${hasMore ? ' and more' : ''}; give more of the text around it`,
  edit_removes_most: ({ path, removed, lines }) =>
    `this removes ${removed} of ${lines} lines of "${path}"; to confirm, repeat it with "removes": ${removed}`,
  edit_near_equal: ({ differs, lines }) =>
    `Text that differs only in ${differencesOf(differs)} is at ${lines.includes(',') ? 'the lines' : 'line'} ${lines}. ` +
    'Nothing was changed. Repeat the edit with the exact text of the file.',
  edit_near_lines: ({ shown }) => `The nearest lines are:\n${shown}`,
  edit_near_nothing: () => 'No line is similar to it; read the file again.',
  edit_not_compared: () => 'The file is too large to compare; read the lines that you want to change.',
  search_not_re2: ({ problem }) => `the expression is not RE2: ${problem}`,
  work_too_long: ({ deadlineMs }) =>
    `the work on this text took over ${deadlineMs} ms and was ended; give a smaller or simpler one`,
  work_too_large: () => 'the work on this text needs too much memory; give a smaller one',

  plan_missing: ({ path }) => `there is no plan ${path === '' ? 'at this path' : `"${path}"`}`,
  plan_exists: ({ path }) => `there is a plan "${path}" already. What to do: edit its file`,
  plan_without_steps: () =>
    'the file has no step. What to do: add lines such as "- [ ] First step" at the top level',
  plan_too_large: ({ steps, chars }) =>
    `the plan is too large: at most ${steps} steps of ${chars} characters`,
  plan_step_missing: ({ stepId, steps }) => `the plan has no step "${stepId}"; its steps: ${steps}`,
  plan_step_done: ({ stepId }) => `the step "${stepId}" is done already`,
  plan_running: () => 'a run of this plan is in progress',
  plan_done: () => 'every step of the plan is done',
  plan_without_tool: ({ agentId }) =>
    `the agent "${agentId}" has no tool plan_step. What to do: add it to the agent's tools`,
  agent_not_living: ({ agentId }) => `there is no living agent "${agentId}"`,
  plan_of_fork: () =>
    'plans are in the files of the workspace, and a forked session has files of its own. What to do: use a session that is no fork',
  plan_without_evidence: () =>
    'a step is done by evidence: name a tool that this turn called with success, or say in `none` why there is none',
};

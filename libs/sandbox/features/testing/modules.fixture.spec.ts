import binaryen from 'assemblyscript/binaryen';

const wat = (text: string): Uint8Array => {
  const module = binaryen.parseText(text);
  module.setFeatures(binaryen.Features.All);
  const bytes = module.emitBinary();
  module.dispose();
  return bytes;
};

const host = (name: string, type = ''): string =>
  `(import "extism:host/env" "${name}" (func $${name} ${type}))`;

/** `$block at len` copies plug-in memory into a new block; `$say at len` sets it as the output. */
const PRELUDE = `
  (import "env" "abort" (func $abort (param i32 i32 i32 i32)))
  ${host('alloc', '(param i64) (result i64)')}
  ${host('free', '(param i64)')}
  ${host('store_u8', '(param i64 i32)')}
  ${host('output_set', '(param i64 i64)')}
  ${host('error_set', '(param i64)')}
  ${host('length', '(param i64) (result i64)')}
  ${host('load_u64', '(param i64) (result i64)')}
  ${host('config_get', '(param i64) (result i64)')}
  ${host('var_get', '(param i64) (result i64)')}
  ${host('var_set', '(param i64 i64)')}
  ${host('log_info', '(param i64)')}`;
const HELPERS = `
  (func $block (param $at i32) (param $len i32) (result i64) (local $to i64) (local $i i32)
    (local.set $to (call $alloc (i64.extend_i32_u (local.get $len))))
    (loop $next
      (call $store_u8 (i64.add (local.get $to) (i64.extend_i32_u (local.get $i)))
        (i32.load8_u (i32.add (local.get $at) (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $len))))
    (local.get $to))
  (func $say (param $at i32) (param $len i32)
    (call $output_set (call $block (local.get $at) (local.get $len)) (i64.extend_i32_u (local.get $len))))`;

/** Creates a tool whose `handle_tool_call` is `body` (an i32 status); memory starts with `data`. */
const tool = (
  body: string,
  { data = '', memory = '(memory (export "memory") 1)', rest = '' } = {},
): Uint8Array =>
  wat(`(module ${PRELUDE} ${memory} (data (i32.const 0) "${data}") ${HELPERS} ${rest}
    (func (export "handle_tool_call") (result i32) (local $i i32) ${body}))`);

/** Creates a tool with `declares` in its description. A call logs a line and never returns. */
const endless = (declares: object): Uint8Array => {
  const text = JSON.stringify({ description: 'Never ends.', ...declares });
  return tool(`(call $log_info (call $block (i32.const 0) (i32.const 3))) (loop $l (br $l)) (i32.const 0)`, {
    data: `ran${text.replaceAll('"', '\\22')}`,
    rest: `(func (export "describe") (result i32) (call $say (i32.const 3) (i32.const ${text.length})) (i32.const 0))`,
  });
};

const PAGE = '{\\22url\\22:\\22http://api.example.com/act\\22}';
const PAGE_LENGTH = PAGE.replaceAll('\\22', '"').length;
/** Creates a tool that requests a page and continues with `then`. */
const fetching = (then: string): Uint8Array =>
  wat(`(module (import "extism:host/env" "http_request" (func $http (param i64 i64) (result i64)))
    ${PRELUDE} (memory (export "memory") 1) (data (i32.const 0) "${PAGE}") ${HELPERS}
    (func (export "handle_tool_call") (result i32)
      (drop (call $http (call $block (i32.const 0) (i32.const ${PAGE_LENGTH})) (i64.const 0))) ${then}))`);

const wasi = (name: string, parameters: string): string =>
  `(import "wasi_snapshot_preview1" "${name}" (func $${name} ${parameters === '' ? '' : `(param ${parameters})`}${name === 'proc_exit' ? '' : ' (result i32)'}))`;
const user = (name: string, type: string): string =>
  `(import "extism:host/user" "${name}" (func $${name} ${type}))`;
/** Says the 16 bytes of memory from `at` as hexadecimal digits; the text is written at 512. */
const SAY_HEX = `
  (func $digit (param $n i32) (result i32)
    (i32.add (local.get $n) (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $n) (i32.const 10)))))
  (func $say_hex (param $at i32) (local $i i32) (local $b i32)
    (loop $next
      (local.set $b (i32.load8_u (i32.add (local.get $at) (local.get $i))))
      (i32.store8 (i32.add (i32.const 512) (i32.shl (local.get $i) (i32.const 1)))
        (call $digit (i32.shr_u (local.get $b) (i32.const 4))))
      (i32.store8 (i32.add (i32.const 513) (i32.shl (local.get $i) (i32.const 1)))
        (call $digit (i32.and (local.get $b) (i32.const 15))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 16))))
    (call $say (i32.const 512) (i32.const 32)))`;
/** Creates a tool with more imports; they come first, as the format requires. */
const importing = (imports: string, body: string, data = ''): Uint8Array =>
  wat(`(module ${imports} ${PRELUDE} (memory (export "memory") 1) (data (i32.const 0) "${data}") ${HELPERS} ${SAY_HEX}
    (func (export "handle_tool_call") (result i32) (local $i i32) ${body}))`);

const CLAIMS = '{"content":"mine","is_error":false,"tool_use_id":"t","session":"s","cost":0,"durationMs":-1}';
const OK = '(i32.const 0)';
const LOOP = '(loop $l (br $l))';
/** Creates a module without imports and helpers. */
const bare = (fields: string): Uint8Array => wat(`(module ${fields})`);
const handler = (body: string): string => `(func (export "handle_tool_call") (result i32) ${body})`;

/** Creates a tool that sends its input as a request, with `body`, and says the page. */
const sending = (body: string): Uint8Array =>
  wat(`(module (import "extism:host/env" "http_request" (func $http (param i64 i64) (result i64)))
    (import "extism:host/env" "input_offset" (func $input (result i64))) ${PRELUDE} (memory (export "memory") 1)
    (func (export "handle_tool_call") (result i32) (local $page i64)
      (local.set $page (call $http (call $input) ${body}))
      (call $output_set (local.get $page) (call $length (local.get $page))) (i32.const 0)))`);

/** Hostile and simple modules by the name under which the specs register them. */
export const MODULES: Readonly<Record<string, Uint8Array>> = {
  hello: tool(`(call $say (i32.const 0) (i32.const 5)) ${OK}`, { data: 'hello' }),
  loop: bare(handler(`${LOOP} ${OK}`)),
  'start-loop': bare(`(func $s ${LOOP}) (start $s) ${handler(OK)}`),
  'start-trap': bare(`(func $s unreachable) (start $s) ${handler(OK)}`),
  'memory-grow': bare(
    `(memory (export "memory") 1) ${handler(
      `(drop (memory.grow (i32.const 4096))) (memory.fill (i32.const 0) (i32.const 7) (i32.const 268435456)) ${OK}`,
    )}`,
  ),
  // Grows to its limit, writes all of it and succeeds.
  'memory-fill': bare(
    `(memory (export "memory") 1) ${handler(
      `(drop (memory.grow (i32.const 255))) (memory.fill (i32.const 0) (i32.const 7) (i32.const 16777216)) ${OK}`,
    )}`,
  ),
  'memory-huge': bare(`(memory 65536) ${handler(OK)}`),
  'table-grow': bare(
    `(table $t 1 externref) ${handler('(table.grow $t (ref.null extern) (i32.const 9999990))')}`,
  ),
  'memory-4gib': bare(
    `(memory (export "memory") 1) ${handler(
      `(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
       (drop (memory.grow (i32.const 65535))) (memory.fill (i32.const 0) (i32.const 7) (i32.const -1)) ${OK}`,
    )}`,
  ),
  'table-fill': bare(
    `(table $t 1 externref) ${handler(
      `(loop $l (br_if $l (i32.ne (table.grow $t (ref.null extern) (i32.const 1)) (i32.const -1))))
       (table.set $t (table.size $t) (ref.null extern)) ${OK}`,
    )}`,
  ),
  // Exits in the middle of a call. The second one catches the exception and continues.
  exit: importing(
    wasi('proc_exit', 'i32'),
    `(call $proc_exit (i32.const 0)) (call $say (i32.const 0) (i32.const 4)) ${OK}`,
    'fine',
  ),
  'exit-caught': importing(
    wasi('proc_exit', 'i32'),
    `(try (do (call $proc_exit (i32.const 3))) (catch_all)) (call $say (i32.const 0) (i32.const 4)) ${OK}`,
    'fine',
  ),
  // Asks each clock of WASI; says the wall clock, and the other one.
  'wasi-clock': importing(
    wasi('clock_time_get', 'i32 i64 i32'),
    `(drop (call $clock_time_get (i32.const 0) (i64.const 1) (i32.const 0)))
     (drop (call $clock_time_get (i32.const 1) (i64.const 1) (i32.const 8))) (call $say_hex (i32.const 0)) ${OK}`,
  ),
  'wasi-random': importing(
    wasi('random_get', 'i32 i32'),
    `(drop (call $random_get (i32.const 0) (i32.const 16))) (call $say_hex (i32.const 0)) ${OK}`,
  ),
  // Says the error codes of the functions that would give something outside of the call.
  'wasi-nothing': importing(
    [
      ...[
        wasi('args_sizes_get', 'i32 i32'),
        wasi('environ_sizes_get', 'i32 i32'),
        wasi('fd_read', 'i32 i32 i32 i32'),
      ],
      ...[
        wasi('fd_prestat_get', 'i32 i32'),
        wasi('fd_readdir', 'i32 i32 i32 i64 i32'),
        wasi('fd_seek', 'i32 i64 i32 i32'),
      ],
      ...[
        wasi('fd_fdstat_get', 'i32 i32'),
        wasi('fd_write', 'i32 i32 i32 i32'),
        wasi('random_get', 'i32 i32'),
      ],
      wasi('poll_oneoff', 'i32 i32 i32 i32'),
    ].join('\n'),
    [
      '(call $args_sizes_get (i32.const 64) (i32.const 68))',
      '(i32.or (call $environ_sizes_get (i32.const 72) (i32.const 76)) (i32.or (i32.load (i32.const 64)) (i32.load (i32.const 72))))',
      '(call $fd_read (i32.const 3) (i32.const 64) (i32.const 1) (i32.const 80))',
      '(call $fd_prestat_get (i32.const 3) (i32.const 64))',
      '(call $fd_readdir (i32.const 3) (i32.const 64) (i32.const 8) (i64.const 0) (i32.const 80))',
      '(call $fd_seek (i32.const 3) (i64.const 0) (i32.const 0) (i32.const 80))',
      '(call $fd_fdstat_get (i32.const 7) (i32.const 64))',
      '(call $fd_write (i32.const 3) (i32.const 64) (i32.const 1) (i32.const 80))',
      // Out of the memory, and more than it has.
      '(call $random_get (i32.const 65530) (i32.const 16))',
      '(call $fd_write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 80))',
      '(call $poll_oneoff (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 80))',
    ]
      .map((code, index) => `(i32.store8 (i32.const ${32 + index}) ${code})`)
      .join('\n') + `(call $say_hex (i32.const 32)) ${OK}`,
  ),
  // Writes `hello` to the standard output by WASI, in two buffers.
  'wasi-write': importing(
    wasi('fd_write', 'i32 i32 i32 i32'),
    `(i32.store (i32.const 64) (i32.const 0)) (i32.store (i32.const 68) (i32.const 2))
     (i32.store (i32.const 72) (i32.const 2)) (i32.store (i32.const 76) (i32.const 3))
     (drop (call $fd_write (i32.const 1) (i32.const 64) (i32.const 2) (i32.const 80)))
     (i32.sub (i32.load (i32.const 80)) (i32.const 5))`,
    'hello',
  ),
  // Imports an HTTP function as kits for WASI do. Requests a page if its input has over two bytes.
  'wasi-http': importing(
    `${wasi('sched_yield', '')} (import "extism:host/env" "http_request" (func $http (param i64 i64) (result i64)))
     (import "extism:host/env" "input_length" (func $input_length (result i64)))`,
    `(if (i64.gt_u (call $input_length) (i64.const 2))
       (then (drop (call $http (call $block (i32.const 0) (i32.const ${PAGE_LENGTH})) (i64.const 0)))))
     (call $say (i32.const 0) (i32.const 1)) ${OK}`,
    PAGE,
  ),
  'import-clock': importing(
    user('clock_ms', '(result i64)'),
    `(i64.store (i32.const 0) (call $clock_ms)) (call $say_hex (i32.const 0)) ${OK}`,
  ),
  'import-random': importing(
    user('random_bytes', '(param i32) (result i64)'),
    `(local $block i64) (local.set $block (call $random_bytes (i32.const 16)))
     (if (i64.ne (call $length (local.get $block)) (i64.const 16)) (then (return (i32.const 1))))
     (i64.store (i32.const 0) (call $load_u64 (local.get $block)))
     (i64.store (i32.const 8) (call $load_u64 (i64.add (local.get $block) (i64.const 8)))) (call $say_hex (i32.const 0)) ${OK}`,
  ),
  'import-store': importing(user('store_get', '(param i64 i64) (result i64)'), OK),
  // Its input is a JSON text: an operation, a key of one letter and the rest as the value.
  notes: wat(`(module
    ${[
      ...[
        user('store_get', '(param i64 i64) (result i64)'),
        user('store_set', '(param i64 i64 i64) (result i32)'),
      ],
      ...[
        user('store_delete', '(param i64 i64) (result i32)'),
        user('store_list', '(param i64 i64) (result i64)'),
      ],
      ...[host('input_length', '(result i64)'), host('input_load_u8', '(param i64) (result i32)')],
    ].join('\n')}
    ${PRELUDE} (memory (export "memory") 4) (data (i32.const 0) "notesothernone") ${HELPERS}
    (func $out (param $block i64)
      (if (i64.eqz (local.get $block)) (then (call $say (i32.const 10) (i32.const 4)))
        (else (call $output_set (local.get $block) (call $length (local.get $block))))))
    (func $digit (param $n i32) (i32.store8 (i32.const 600) (i32.add (i32.const 48) (local.get $n))) (call $say (i32.const 600) (i32.const 1)))
    (func (export "handle_tool_call") (result i32) (local $i i32) (local $len i32) (local $op i32) (local $name i64) (local $key i64)
      (local.set $len (i32.wrap_i64 (call $input_length)))
      (loop $next
        (i32.store8 (i32.add (i32.const 1024) (local.get $i)) (call $input_load_u8 (i64.extend_i32_u (local.get $i))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (local.get $len))))
      (local.set $op (i32.load8_u (i32.const 1025)))
      (local.set $name (call $block (select (i32.const 5) (i32.const 0) (i32.eq (local.get $op) (i32.const 120))) (i32.const 5)))
      (if (i32.eq (local.get $op) (i32.const 108)) (then (call $out (call $store_list (local.get $name) (i64.const 0))) (return (i32.const 0))))
      (local.set $key (call $block (i32.const 1026) (i32.const 1)))
      (if (i32.eq (local.get $op) (i32.const 115)) (then (call $digit (call $store_set (local.get $name) (local.get $key)
        (call $block (i32.const 1027) (i32.sub (local.get $len) (i32.const 4))))) (return (i32.const 0))))
      (if (i32.eq (local.get $op) (i32.const 100)) (then (call $digit (call $store_delete (local.get $name) (local.get $key))) (return (i32.const 0))))
      (call $out (call $store_get (local.get $name) (local.get $key))) (i32.const 0)))`),
  recursion: bare(`(func $f (call $f)) ${handler(`(call $f) ${OK}`)}`),
  trap: bare(handler('unreachable')),
  'import-unknown': bare(`(import "env" "system" (func)) ${handler(OK)}`),
  'import-wasi': bare(
    `(import "wasi_snapshot_preview1" "path_open" (func (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32))) ${handler(OK)}`,
  ),
  'import-http': bare(
    `(import "extism:host/env" "http_request" (func (param i64 i64) (result i64))) ${handler(OK)}`,
  ),
  'output-flood': tool(`(call $output_set (call $alloc (i64.const 536870912)) (i64.const 536870912)) ${OK}`),
  // Catches the exception of the host and reports success.
  'output-flood-caught': tool(
    `(try (do (drop (call $alloc (i64.const 536870912)))) (catch_all)) (call $say (i32.const 0) (i32.const 4)) ${OK}`,
    { data: 'fine' },
  ),
  'output-null': tool(`(call $output_set (i64.const 0) (i64.const 4)) ${OK}`),
  'output-wild': tool(`(call $output_set (i64.const 1099511627776) (i64.const 4)) ${OK}`),
  'not-json': tool(`(call $say (i32.const 0) (i32.const 3)) ${OK}`, { data: '\\ff\\fe\\00' }),
  'log-flood': tool(
    `(loop $l (call $log_info (call $block (i32.const 0) (i32.const 1000)))
      (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (i32.const 200)))) ${OK}`,
    { data: 'x'.repeat(1_000) },
  ),
  'log-forever': tool(`(loop $l (call $log_info (call $block (i32.const 0) (i32.const 4))) (br $l)) ${OK}`, {
    data: 'line',
  }),
  // Claims fields of the host.
  claims: tool(`(call $say (i32.const 0) (i32.const ${CLAIMS.length})) ${OK}`, {
    data: CLAIMS.replaceAll('"', '\\22'),
  }),
  'config-proto': tool(`(i32.wrap_i64 (call $config_get (call $block (i32.const 0) (i32.const 11))))`, {
    data: 'constructor',
  }),
  // Returns the idempotency key of its call.
  'says-key': tool(
    `(local $key i64) (local.set $key (call $config_get (call $block (i32.const 0) (i32.const 15))))
     (call $output_set (local.get $key) (call $length (local.get $key))) ${OK}`,
    { data: 'idempotency_key' },
  ),
  // Returns 'fresh' unless its memory, global or variables hold data of an earlier call.
  memo: tool(
    `(if (i32.eqz (i32.and (i32.eqz (global.get $calls)) (i32.and (i32.eqz (i32.load (i32.const 1024)))
        (i64.eqz (call $var_get (call $block (i32.const 0) (i32.const 5)))))))
      (then (call $say (i32.const 8) (i32.const 5)) (return ${OK})))
    (global.set $calls (i32.const 1))
    (i32.store (i32.const 1024) (i32.const 1))
    (call $var_set (call $block (i32.const 0) (i32.const 5)) (call $block (i32.const 0) (i32.const 5)))
    (call $say (i32.const 0) (i32.const 5)) ${OK}`,
    { data: 'fresh\\00\\00\\00stale', rest: '(global $calls (mut i32) (i32.const 0))' },
  ),
  'sets-error': tool(`(call $error_set (call $block (i32.const 0) (i32.const 6))) (i32.const 1)`, {
    data: 'broken',
  }),
  status: bare(handler('(i32.const 3)')),
  // AssemblyScript's strings: length in bytes before, UTF-16 after.
  aborts: tool(`(call $abort (i32.const 4) (i32.const 20) (i32.const 7) (i32.const 9)) ${OK}`, {
    data: '\\06\\00\\00\\00b\\00a\\00d\\00\\00\\00\\00\\00\\00\\00\\08\\00\\00\\00a\\00.\\00t\\00s\\00',
  }),
  channel: bare('(func (export "parse_incoming")) (func (export "format_outgoing"))'),
  'no-export': bare('(func (export "nope"))'),
  'bad-describe': bare(`${handler(OK)} (func (export "describe") (result i32) (i32.const 0))`),
  'describe-loop': bare(`${handler(OK)} (func (export "describe") (result i32) ${LOOP} ${OK})`),
  requests: sending('(i64.const 0)'),
  'requests-with-body': sending('(call $input)'),
  'fetch-loop': fetching(`${LOOP} ${OK}`),
  'fetch-trap': fetching('unreachable'),
  'fetch-ok': fetching(`(call $say (i32.const 0) (i32.const 1)) ${OK}`),
  patient: endless({
    idempotent: true,
    timeout_ms: 250,
    retry: { max_attempts: 4, backoff_ms: 50, max_backoff_ms: 800, on_timeout: true },
  }),
  'declares-nothing': endless({ idempotent: true }),
  once: endless({ timeout_ms: 250 }),
  'retry-too-often': endless({ idempotent: true, retry: { max_attempts: 99 } }),
  'retry-unsafe': endless({ retry: { max_attempts: 2 } }),
  'retry-misspelt': endless({ idempotent: true, retry: { max_attempts: 2, backof_ms: 5 } }),
  'timeout-too-long': endless({ timeout_ms: 3_600_000 }),
  'not-wasm': new TextEncoder().encode('#!/bin/sh\necho x'),
};

import type { Signature } from './module-layout.js';

type Functions = Readonly<Record<string, Signature>>;

/** Import module under which each Extism development kit expects its host functions. */
export const EXTISM_MODULE = 'extism:host/env';
/** Import module of the host functions that a host adds, in each Extism development kit. */
export const USER_MODULE = 'extism:host/user';
/** Import module of programs that compilers build for WASI, preview 1. */
export const WASI_MODULE = 'wasi_snapshot_preview1';

/**
 * Extism's host functions that a cell implements, with their exact types. A function imported with
 * another type would fail in the middle of a call instead of at load.
 */
export const EXTISM_FUNCTIONS: Functions = {
  alloc: '(i64)->(i64)',
  free: '(i64)->()',
  length: '(i64)->(i64)',
  length_unsafe: '(i64)->(i64)',
  load_u8: '(i64)->(i32)',
  load_u64: '(i64)->(i64)',
  store_u8: '(i64,i32)->()',
  store_u64: '(i64,i64)->()',
  input_offset: '()->(i64)',
  input_length: '()->(i64)',
  input_load_u8: '(i64)->(i32)',
  input_load_u64: '(i64)->(i64)',
  output_set: '(i64,i64)->()',
  error_set: '(i64)->()',
  config_get: '(i64)->(i64)',
  var_get: '(i64)->(i64)',
  var_set: '(i64,i64)->()',
  log_trace: '(i64)->()',
  log_debug: '(i64)->()',
  log_info: '(i64)->()',
  log_warn: '(i64)->()',
  log_error: '(i64)->()',
  get_log_level: '()->(i32)',
};

/**
 * Host functions for plug-ins with an `http:` capability. The service implements them through its
 * vetted client.
 */
export const HTTP_FUNCTIONS: Functions = {
  http_request: '(i64,i64)->(i64)',
  http_status_code: '()->(i32)',
  http_headers: '()->(i64)',
};

/** Host functions of `extism:host/user`, by the capability that grants them. */
export const USER_FUNCTIONS = {
  store: {
    store_get: '(i64,i64)->(i64)',
    store_set: '(i64,i64,i64)->(i32)',
    store_delete: '(i64,i64)->(i32)',
    store_list: '(i64,i64)->(i64)',
  },
  clock: { clock_ms: '()->(i64)' },
  random: { random_bytes: '(i32)->(i64)' },
} as const satisfies Readonly<Record<string, Functions>>;

const I = (count: number): Signature => `(${Array<string>(count).fill('i32').join(',')})->(i32)`;

/**
 * Functions of WASI that a cell has as stubs: they give no file, no socket, no environment and no
 * argument. Functions that name a path or a socket have no stub, and their import is refused.
 */
export const WASI_FUNCTIONS: Functions = {
  args_get: I(2),
  args_sizes_get: I(2),
  environ_get: I(2),
  environ_sizes_get: I(2),
  clock_res_get: I(2),
  clock_time_get: '(i32,i64,i32)->(i32)',
  fd_advise: '(i32,i64,i64,i32)->(i32)',
  fd_allocate: '(i32,i64,i64)->(i32)',
  fd_close: I(1),
  fd_datasync: I(1),
  fd_fdstat_get: I(2),
  fd_fdstat_set_flags: I(2),
  fd_fdstat_set_rights: '(i32,i64,i64)->(i32)',
  fd_filestat_get: I(2),
  fd_filestat_set_size: '(i32,i64)->(i32)',
  fd_filestat_set_times: '(i32,i64,i64,i32)->(i32)',
  fd_pread: '(i32,i32,i32,i64,i32)->(i32)',
  fd_prestat_get: I(2),
  fd_prestat_dir_name: I(3),
  fd_pwrite: '(i32,i32,i32,i64,i32)->(i32)',
  fd_read: I(4),
  fd_readdir: '(i32,i32,i32,i64,i32)->(i32)',
  fd_renumber: I(2),
  fd_seek: '(i32,i64,i32,i32)->(i32)',
  fd_sync: I(1),
  fd_tell: I(2),
  fd_write: I(4),
  poll_oneoff: I(4),
  proc_exit: '(i32)->()',
  proc_raise: I(1),
  random_get: I(2),
  sched_yield: '()->(i32)',
};

/**
 * Function that AssemblyScript's runtime imports to report a failed assertion: message, file, line,
 * column.
 */
export const ABORT = { module: 'env', name: 'abort', signature: '(i32,i32,i32,i32)->()' } as const;

import type { Signature } from './module-layout.js';

/** The import module under which every Extism plug-in development kit finds its host. */
export const EXTISM_MODULE = 'extism:host/env';

/**
 * The part of Extism's interface that a cell serves, with the exact types: a function called with other
 * types than it was written for would fail in the middle of a call instead of at load.
 */
export const EXTISM_FUNCTIONS: Readonly<Record<string, Signature>> = {
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

/** Granted to a plug-in with an `http:` capability only: the service answers them through its vetted client. */
export const HTTP_FUNCTIONS: Readonly<Record<string, Signature>> = {
  http_request: '(i64,i64)->(i64)',
  http_status_code: '()->(i32)',
  http_headers: '()->(i64)',
};

/** What AssemblyScript's runtime imports to report a failed assertion: message, file, line, column. */
export const ABORT = { module: 'env', name: 'abort', signature: '(i32,i32,i32,i32)->()' } as const;

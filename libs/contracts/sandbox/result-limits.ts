/** Maximum size of the result of any tool, bytes. */
export const MAX_RESULT_BYTES = 64 * 1024 * 1024;
/** Size up to which a result is in a reply and in an event, bytes of JSON. A larger one is stored. */
export const MAX_INLINE_RESULT_BYTES = 768 * 1024;
/** Size of the head and tail of a stored result, in a reply and in its event, bytes. */
export const RESULT_PREVIEW_BYTES = 32 * 1024;
/** Maximum size of one part of a result that is handed over, bytes. */
export const RESULT_PART_BYTES = 512 * 1024;

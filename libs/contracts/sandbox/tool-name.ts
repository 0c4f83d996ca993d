import { z } from 'zod';

export const ToolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

/** Maximum size of the result of a plug-in that sets none, bytes. */
export const MAX_TOOL_OUTPUT_BYTES = 1024 * 1024;

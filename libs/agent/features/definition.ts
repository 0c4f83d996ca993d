/** For who checks a definition without the service: no provider's SDK, no Nest. */
export { orderOf } from './save-workflow/judge-definition.js';
export { parseDefinition } from './save-workflow/parse-definition.js';

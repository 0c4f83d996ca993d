/** For who checks a definition without the service: no provider's SDK, no Nest. */
export { orderOf } from './runs/judge-definition.js';
export { parseDefinition } from './runs/parse-definition.js';

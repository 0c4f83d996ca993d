// Checks definitions without the service: no provider's SDK, no Nest.
export { orderOf, parseDefinition } from './runs/parse-definition.js';

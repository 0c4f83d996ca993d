export * from './events.js';
export * from './frames.js';
export * from './requests.js';
export * from './run-events.js';
export * from './session-key.js';
export * from './workflow-definition.js';
export * from './workflow-events.js';
export * from './workflow-requests.js';

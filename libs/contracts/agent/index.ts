export * from './events.js';
export * from './frames.js';
export * from './requests.js';
export * from './session-key.js';

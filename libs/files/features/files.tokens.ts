/** Token of the dependencies of the request handlers of files. Each declares those that it uses. */
export const FILES_SERVICES = Symbol('FILES_SERVICES');

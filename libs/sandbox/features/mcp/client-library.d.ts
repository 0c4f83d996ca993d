/** Loaded with the first connection. `client-library.port.ts` has the types that are used. */
declare module '@modelcontextprotocol/client';

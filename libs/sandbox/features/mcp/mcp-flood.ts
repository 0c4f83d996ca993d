/** Maximum number of messages of a server in a second. */
export const MAX_MESSAGES_PER_SECOND = 500;

/** A server that sends more than a client reads. Its connection is closed. */
export class McpFlood extends Error {}

/** Error of a start that another attempt would meet as well. */
export class StartRefused extends Error {
  constructor(cause: unknown) {
    super(`refused its first request: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'StartRefused';
  }
}

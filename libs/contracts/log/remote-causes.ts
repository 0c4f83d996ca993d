/** Fields of the causes of failed calls of remote tools. */
export interface RemoteFields {
  tool_without_worker: { readonly waitedMs: number };
  tool_worker_lost: unknown;
  /** The request did not leave: `reason` says why. */
  tool_endpoint_unreached: { readonly reason: string };
  tool_secret_missing: { readonly secret: string };
}

export const REMOTE_TEXTS: { readonly [K in keyof RemoteFields]: (fields: RemoteFields[K]) => string } = {
  tool_without_worker: ({ waitedMs }) =>
    waitedMs === 0
      ? 'no program serves this tool now; it was not run'
      : `no program served this tool within ${waitedMs} ms; it was not run`,
  tool_worker_lost: () => 'the program that ran the tool went away during the call',
  tool_endpoint_unreached: ({ reason }) =>
    `the endpoint of the tool was not reached (${reason}); it was not run`,
  tool_secret_missing: ({ secret }) =>
    `the workspace has no secret ${secret}, which signs the calls of this tool; it was not run`,
};

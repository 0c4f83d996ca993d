/** Kind of a thing that an id may name. */
export type Kind = 'session' | 'run' | 'turn';

type Ask = (request: {
  readonly params: { readonly id: string };
  readonly signal?: AbortSignal;
}) => Promise<unknown>;
type Asks = Readonly<Record<'getSession' | 'getRun' | 'findTurn', Ask>>;

const isMissing = (error: unknown): boolean =>
  [400, 403, 404].includes((error as { readonly status?: number } | null)?.status ?? 0);

/** Asks the API which things have an id. Throws if the API cannot tell. */
export const findById = async (http: Asks, id: string, signal?: AbortSignal): Promise<readonly Kind[]> => {
  const request = { params: { id }, ...(signal && { signal }) };
  const asked = (
    [
      ['session', http.getSession],
      ['run', http.getRun],
      ['turn', http.findTurn],
    ] as const
  ).map(async ([kind, ask]) => {
    try {
      await ask(request);
      return [kind];
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  });
  return (await Promise.all(asked)).flat();
};

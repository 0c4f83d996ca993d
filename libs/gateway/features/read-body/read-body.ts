import { Injectable } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import type { z } from 'zod';
import { MAX_JSON_DEPTH, invalid } from '@antiphon/kernel';

/** Without recursion: a body within its size can nest deeper than a stack is. */
const isDeeperThan = (value: unknown, limit: number): boolean => {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return true;
    level = level.flatMap((item) => (item !== null && typeof item === 'object' ? Object.values(item) : []));
  }
  return false;
};

const issuesOf = (error: z.ZodError): string =>
  error.issues
    .map(({ path, message }) => [path.map(String).join('.'), message].filter(Boolean).join(': '))
    .join('; ');

/** What a request says, by its contract; throws `GATEWAY.INVALID_BODY`. */
export const readAs = <S extends z.ZodType>(
  schema: S,
  value: unknown,
  code = 'GATEWAY.INVALID_BODY',
): z.output<S> => {
  if (isDeeperThan(value, MAX_JSON_DEPTH)) throw invalid(code, `it nests over ${MAX_JSON_DEPTH} levels deep`);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(code, issuesOf(parsed.error));
};

/** A parameter, body, query or header by its contract. */
@Injectable()
export class ReadPipe<S extends z.ZodType> implements PipeTransform<unknown, z.output<S>> {
  constructor(
    private readonly schema: S,
    private readonly code = 'GATEWAY.INVALID_BODY',
  ) {}

  transform(value: unknown): z.output<S> {
    return readAs(this.schema, value, this.code);
  }
}

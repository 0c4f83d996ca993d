import { MessagePattern, Transport } from '@nestjs/microservices';
import type { z } from 'zod';
import type { RequestContract } from '@antiphon/contracts/messaging';

/** What a handler came to; Nest's own error filters would replace a thrown error by a text of theirs. */
export type Outcome =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

/** Contracts without their types, as the server keeps them beside their handlers. */
export type AnyContract = RequestContract<z.ZodType, z.ZodType>;

type Answer<Reply extends z.ZodType> = z.input<Reply> | Promise<z.input<Reply>>;

/**
 * Makes a method of a Nest controller answer `contract.subject`. It is called with the parsed request, inside the
 * caller's RequestContext; it returns the reply, or throws an AppError, which the caller gets as the same kind and code.
 */
export const HandleRequest =
  <Request extends z.ZodType, Reply extends z.ZodType>(contract: RequestContract<Request, Reply>) =>
  <Method extends (request: z.output<Request>) => Answer<Reply>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    const method = descriptor.value as Method;
    const settle = async function (this: unknown, request: z.output<Request>): Promise<Outcome> {
      try {
        return { ok: true, value: await method.call(this, request) };
      } catch (error) {
        return { ok: false, error };
      }
    };
    descriptor.value = settle as unknown as Method;
    MessagePattern(contract.subject, Transport.NATS, { contract })(target, key, descriptor);
  };

import type { Provider } from '@nestjs/common';

/** Injection token of a value of type `T`: its class, or a symbol of `createToken`. */
export type Token<T> = TokenSymbol<T> | (abstract new (...args: never[]) => T);
type TokenSymbol<T> = symbol & { readonly valueType?: T };

type Tokens<T> = { readonly [K in keyof T]: Token<T[K]> };

/** Creates the injection token of a value that is no instance of a class. */
export const createToken = <T>(name: string): TokenSymbol<T> => Symbol(name) as TokenSymbol<T>;

/** Provides a value that a function creates from others. The compiler checks the types of all. */
export const provide = <T, D extends readonly unknown[]>(
  token: Token<T>,
  inject: readonly [...Tokens<D>],
  useFactory: (...deps: D) => T,
): Provider => ({ provide: token, inject: [...inject], useFactory });

/** Provides a class whose constructor takes one object with its dependencies. */
export const provideClass = <T, D extends object>(
  type: new (deps: D) => T,
  deps: Tokens<D>,
  as: Token<T> = type,
): Provider => {
  const names = Object.keys(deps);
  return {
    provide: as,
    inject: Object.values(deps),
    useFactory: (...values: unknown[]) =>
      new type(Object.fromEntries(names.map((name, index) => [name, values[index]])) as D),
  };
};

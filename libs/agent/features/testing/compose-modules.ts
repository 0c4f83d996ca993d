import 'reflect-metadata';
import type { Provider, Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { Token } from '@antiphon/service-host';

type AnyToken = Token<unknown>;
interface Factory {
  readonly inject: readonly AnyToken[];
  readonly create: (...deps: never[]) => unknown;
}

const readList = <T>(name: string, type: object): readonly T[] =>
  (Reflect.getMetadata(name, type) as T[] | undefined) ?? [];

const factoryOf = (type: Type): Factory => {
  const declared = readList<{ readonly index: number; readonly param: AnyToken }>('self:paramtypes', type);
  const inject = declared.toSorted((a, b) => a.index - b.index).map(({ param }) => param);
  return { inject, create: (...deps: never[]) => new type(...deps) as unknown };
};

const modulesOf = (root: Type): Type[] => [
  ...readList<Type>('imports', root).flatMap((imported) => modulesOf(imported)),
  root,
];

/** A value for a token, instead of the one that its module provides. */
export type Override = readonly [token: AnyToken, value: unknown];
export const override = <T>(token: Token<T>, value: T): Override => [token, value];

/** Gives the values of tokens, as the modules of a composed process provide them. */
export interface Composition {
  get<T>(token: Token<T>): T;
}

/**
 * Composes global Nest modules as Nest does, from the same providers. Each value is created when it
 * is first asked for, without a wait, so that a spec pays only for what it uses.
 */
export const composeModules = (root: Type, overrides: readonly Override[]): Composition => {
  const factories = new Map<unknown, Factory>();
  for (const module of modulesOf(root)) {
    for (const type of readList<Type>('controllers', module)) factories.set(type, factoryOf(type));
    for (const provider of readList<Provider>('providers', module))
      if (typeof provider === 'function') factories.set(provider, factoryOf(provider as Type));
      else if ('useFactory' in provider)
        factories.set(provider.provide, {
          inject: (provider.inject ?? []) as AnyToken[],
          create: provider.useFactory as Factory['create'],
        });
  }
  const values = new Map<unknown, unknown>(overrides);
  const creating = new Set<unknown>();
  const get = <T>(token: Token<T>): T => {
    if (!values.has(token)) {
      const factory = factories.get(token);
      if (!factory || creating.has(token))
        throw new Error(`${factory ? 'circle at' : 'no provider of'} ${String(token)}`);
      creating.add(token);
      values.set(token, factory.create(...(factory.inject.map((each) => get(each)) as never[])));
      creating.delete(token);
    }
    return values.get(token) as T;
  };
  values.set(ModuleRef, { get });
  return { get };
};

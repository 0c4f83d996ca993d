import type { RouteName, RouteReply, RouteRequest } from '@antiphon/client';
import { useState } from 'react';
import { readPages, type ListPage } from './list-pages.js';
import { useReadBy, type AnyCall, type Read, type ReadOptions } from './use-read.js';

export interface ListRead<T> extends Read<T> {
  readonly hasMore: boolean;
  readonly isReadingMore: boolean;
  readonly showMore: () => void;
}

type ListName = { [N in RouteName]: RouteReply<N> extends ListPage ? N : never }[RouteName];

/** Reads a list at the position of the page: its first page, and one more by each `showMore`. */
export const useList = <N extends ListName>(
  name: N,
  request: Omit<RouteRequest<N>, 'signal'>,
  options: ReadOptions = {},
): ListRead<RouteReply<N>> => {
  const text = JSON.stringify(request);
  const [wanted, setWanted] = useState({ text, pages: 1 });
  // Another filter is another list, of which the first page is read.
  const pages = wanted.text === text ? wanted.pages : 1;
  const readAll = (call: AnyCall, given: { readonly query?: object }): Promise<unknown> =>
    readPages((cursor) => {
      const query = { ...given.query, ...(cursor !== null && { cursor }) };
      return call({ ...given, query }) as Promise<ListPage>;
    }, pages);
  const { isKept, ...read } = useReadBy(name, request, options, readAll, pages);
  const isReadingMore = isKept && pages > 1 && !read.problem;
  const showMore = (): void => setWanted({ text, pages: pages + 1 });
  const hasMore = ((read.data as ListPage | undefined)?.nextCursor ?? null) !== null;
  return { ...read, hasMore, isReadingMore, showMore };
};

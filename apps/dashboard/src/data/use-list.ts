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
  const [shown, setShown] = useState({ text, pages: 1 });
  // Another filter is another list, of which the first page is read.
  const pages = wanted.text === text ? wanted.pages : 1;
  const readAll = async (call: AnyCall, given: { readonly query?: object }): Promise<unknown> => {
    const list = await readPages((cursor) => {
      const query = { ...given.query, ...(cursor !== null && { cursor }) };
      return call({ ...given, query }) as Promise<ListPage>;
    }, pages);
    setShown((last) => (last.text === text && last.pages === pages ? last : { text, pages }));
    return list;
  };
  const read = useReadBy(name, request, options, readAll);
  const isReadingMore = pages > 1 && !read.problem && (shown.text !== text || shown.pages < pages);
  const showMore = (): void => {
    setWanted({ text, pages: pages + 1 });
    read.refresh();
  };
  const hasMore = ((read.data as ListPage | undefined)?.nextCursor ?? null) !== null;
  return { ...read, hasMore, isReadingMore, showMore };
};

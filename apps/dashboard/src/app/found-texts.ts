import type { RouteReply } from '@antiphon/client';
import { useEffect, useMemo, useState } from 'react';
import { client } from '../data/gateway.js';
import { usePosition } from '../data/router.js';
import { useFetched, type Read } from '../data/use-read.js';
import { link, type Choice } from './choices.js';
import type { FindPage } from './pages.js';

type Found = RouteReply<'search'>;
type Result = Found['results'][number];

/** Time without a key after which the API is asked, ms. */
const REST_MS = 150;
/** Shorter texts are beginnings of too many words. */
const MIN_TEXT = 2;
const MAX_FOUND = 20;

/** Returns a text once it has not changed for a moment. */
const useRested = (text: string): string => {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), REST_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return rested;
};

const SHOWN = 80;
const cut = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

/** Returns the page of a conversation, at the turn of a message or an answer. */
const conversationOf = ({ id, chatId, sessionId, turnPosition }: Result): string => {
  const from = turnPosition === null ? '' : `?from=${turnPosition}`;
  if (chatId !== null) return `/chats/${chatId}${from}`;
  return sessionId === null ? `/why/${id}` : `/sessions/${sessionId}${from}`;
};

const choiceOf = (result: Result, findPage: FindPage): Choice => {
  const { kind, id, title, text, chatId } = result;
  const name = cut(title === '' ? id : title);
  const findTarget = (page: string, events: string): string => (findPage(page) ? page : events);
  switch (kind) {
    case 'chat':
      return link(`/chats/${id}`, 'chats', name, kind);
    case 'file':
      return link(findTarget(`/files/${id}`, `/events?category=file`), 'copy', name, kind);
    case 'agent':
      return link(`/agents/${encodeURIComponent(id)}`, 'agents', name, kind);
    case 'task':
      return link(findTarget(`/tasks/${id}`, `/events?stream=task-${id}`), 'check', name, kind, text);
    default:
      return {
        ...link(conversationOf(result), chatId === null ? 'sessions' : 'chats', name, kind, text),
        id: `${kind} ${id}`,
      };
  }
};

/** Searches messages, chats, tasks, files and agents by a text, at the position of the page. */
export const useFoundTexts = (
  text: string,
  findPage: FindPage,
): { readonly choices: readonly Choice[]; readonly read: Read<Found>; readonly isLooking: boolean } => {
  const rested = useRested(text);
  const at = usePosition();
  const key = rested.length < MIN_TEXT ? null : `palette search ${at ?? ''} ${rested}`;
  const read = useFetched(key, (signal) => {
    const query = { q: rested, limit: MAX_FOUND, ...(at === null ? {} : { at }) };
    return client.http.search({ query, signal });
  });
  const { data } = read;
  const choices = useMemo(
    () => (rested === text ? (data?.results ?? []) : []).map((result) => choiceOf(result, findPage)),
    [data, rested, text, findPage],
  );
  const isLooking = read.isLoading || (rested !== text && text.length >= MIN_TEXT);
  return { choices, read, isLooking };
};

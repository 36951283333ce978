// Times in the viewer's zone and language.

import { languageTag, t } from './i18n.js';

const formats = new Map();

function format(name, options) {
  const key = `${name} ${languageTag()}`;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(languageTag(), options));
  return formats.get(key);
}

/** Day and time with the zone, for titles. */
export const full = (iso) =>
  format('full', { dateStyle: 'full', timeStyle: 'long' }).format(new Date(iso));

/** The time today, with the day when it is another one. */
export function brief(iso, now = new Date()) {
  const at = new Date(iso);
  const clock = format('clock', { hour: '2-digit', minute: '2-digit' }).format(at);
  if (at.toDateString() === now.toDateString()) return clock;
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  if (at.toDateString() === yesterday.toDateString()) return t('time.yesterday', { clock });
  const same = at.getFullYear() === now.getFullYear();
  const day = format(same ? 'day' : 'year', same ? { month: 'short', day: 'numeric' } : { dateStyle: 'medium' });
  return `${day.format(at)} ${clock}`;
}

/** How long something took, in words. */
export function took(from, to) {
  const seconds = Math.max(0, Math.round((new Date(to) - new Date(from)) / 1000));
  if (seconds < 60) return t('time.seconds', { n: seconds });
  if (seconds < 3600) return t('time.minutes', { n: Math.round(seconds / 60) });
  return t('time.hours', { n: Math.round(seconds / 360) / 10 });
}

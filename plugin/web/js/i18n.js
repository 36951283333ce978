// Words in the viewer's language. A locale maps a key to a text with {names},
// or to a function of the parameters where a text depends on a number.

import en from '../locales/en.js';
import zh from '../locales/zh.js';

const LOCALES = { en, zh };
const STORED = 'agent-teams/language';
let current = 'en';

function stored() {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

export function chooseLanguage(wanted) {
  const preferred = wanted ?? stored() ?? navigator.languages?.find((l) => /^(zh|en)/i.test(l)) ?? 'en';
  current = /^zh/i.test(preferred) ? 'zh' : 'en';
  document.documentElement.lang = current === 'zh' ? 'zh-CN' : 'en';
  if (wanted) {
    try {
      localStorage.setItem(STORED, current);
    } catch {
      // Chosen for this visit.
    }
  }
}

export const language = () => current;
export const languageTag = () => (current === 'zh' ? 'zh-CN' : 'en');
export const LANGUAGES = [['en', 'English'], ['zh', '中文']];

/** Whether there are words for this key. */
export const has = (key) => key in LOCALES[current] || key in en;

/** The words for a key. A missing one shows in English, or as the key. */
export function t(key, params = {}) {
  const text = LOCALES[current][key] ?? en[key] ?? key;
  if (typeof text === 'function') return text(params);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in params ? String(params[name]) : whole));
}

/** A refusal in the viewer's language: by its code, else in the server's words. */
export function errorText(error) {
  const key = `error.${error.code}`;
  if (has(key)) return t(key, { detail: error.message });
  return error.message || t('error.unknown', { code: error.code ?? '?' });
}

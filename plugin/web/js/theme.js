// Light, dark, or as the system says.

const STORED = 'agent-teams/theme';

export function theme() {
  try {
    return localStorage.getItem(STORED) ?? 'auto';
  } catch {
    return 'auto';
  }
}

export function chooseTheme(name) {
  try {
    if (name === 'auto') localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, name);
  } catch {
    // Chosen for this visit.
  }
  applyTheme(name);
}

export function applyTheme(name = theme()) {
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

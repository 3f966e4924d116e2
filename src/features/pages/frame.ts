import { DOCS_PATH } from '../../server/http/paths.ts'
import { type PageCall, type PageView, UI } from './page.ts'
import { PAGES } from './pages.ts'
import type { PageFrame } from './render.ts'
import type { PageRequest, PagesData } from './request.ts'

/** Returns the function that makes paths of pages with parameters, below the mirror's own prefix. */
export function uiOf(base: string): PageCall['ui'] {
  return (path, parameters = {}) => {
    const given = Object.entries(parameters).flatMap(([name, value]): [string, string][] =>
      value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
    )
    const query = new URLSearchParams(given).toString()
    return `${base}${UI}${path}${query === '' ? '' : `?${query}`}`
  }
}

/** Returns what the frame of a page shows: navigation, search, and the links of its footer. */
export function pageFrame(
  { version, style, icon }: Pick<PagesData, 'version' | 'style' | 'icon'>,
  request: Pick<PageRequest, 'base' | 'page' | 'query' | 'signedIn'>,
  view: PageView,
): PageFrame {
  const { base, page, query, signedIn } = request
  const ui = uiOf(base)
  const searched = page === 'search' ? (new URLSearchParams(query).get('q') ?? '') : ''
  const nav = PAGES.flatMap(({ path, label }) =>
    label === null ? [] : [{ label, href: ui(path), current: path === page }],
  )
  return {
    title: view.title,
    blocks: view.blocks,
    version,
    nav,
    style: ui(style),
    icon: ui(icon),
    home: ui(''),
    search: ui('search'),
    query: searched,
    docs: base + DOCS_PATH,
    signIn: signedIn ? null : ui('sign-in'),
    alternates: view.alternates ?? [],
  }
}

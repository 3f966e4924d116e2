import type { Config } from '../../config/schema.ts'
import { ENTRIES, type Page, type PageCall } from './page.ts'
import { PAGES } from './pages.ts'

/** A link of the navigation. */
interface NavigationLink {
  readonly label: string
  readonly href: string
  /** Whether the page that is shown belongs to it. */
  readonly current: boolean
}

/** The navigation as a page shows it. */
export interface Navigation {
  readonly entries: readonly NavigationLink[]
  /** Those of the entry that the page belongs to; none where it has only one. */
  readonly tabs: readonly NavigationLink[]
  /** The name of that entry; null: the page belongs to none. */
  readonly entry: string | null
}

/** What a page is in the navigation: one of the pages, the contract, or neither. */
export type Place = Page | 'contract' | null

/** Returns the navigation for a page. `docs`: the path of the contract. */
export function navigationOf(place: Place, config: Config, ui: PageCall['ui'], docs: string): Navigation {
  const page = place === 'contract' ? null : place
  const entries = ENTRIES.map((label) => {
    const first = PAGES.find(({ entry }) => entry === label)
    return { label, href: ui(first?.path ?? ''), current: page?.entry === label }
  })
  const contract = { label: 'API', href: docs, current: place === 'contract' }
  const tabs = page === null ? [] : tabsOf(page, config, ui)
  return { entries: [...entries, contract], tabs: tabs.length > 1 ? tabs : [], entry: page?.entry ?? null }
}

function tabsOf(page: Page, config: Config, ui: PageCall['ui']): NavigationLink[] {
  const firsts = new Map<string, Page>()
  for (const one of PAGES)
    if (one.tab !== null && one.entry === page.entry && !firsts.has(one.tab)) firsts.set(one.tab, one)
  const shown = [...firsts].filter(([tab, { isOff }]) => tab === page.tab || isOff?.(config) !== true)
  return shown.map(([label, { path }]) => ({ label, href: ui(path), current: label === page.tab }))
}

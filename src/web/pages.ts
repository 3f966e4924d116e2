import type { Page } from './page.ts'
import { OVERVIEW } from './pages/overview.ts'
import { SIGN_IN } from './pages/sign-in.ts'

/** Every page, in the order of the navigation. */
export const PAGES: readonly Page[] = [OVERVIEW, SIGN_IN]

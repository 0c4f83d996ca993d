// Set-up of the Jest project `compact`: stacks of these specs start as `npm start -- --compact`.
process.env['ANTIPHON_TEST_FORM'] = 'compact';

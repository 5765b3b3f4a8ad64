//! `#[derive(Module)]` and `#[derive(Loss)]`, which `todevice::nn` documents.

use proc_macro::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Index, Member, Result};

/// Implements `todevice::nn::Module`: fields become children, parameters and buffers; `forward` is the forward pass.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    module(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Implements `todevice::nn::Loss` and `Module` for a struct whose `forward` takes an output and a target.
#[proc_macro_derive(Loss, attributes(module))]
pub fn derive_loss(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    loss(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn module(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    // A struct without a `forward` method would call this one forever. With its span, the error points there.
    let forward = quote_spanned! {input.ident.span()=>
        #[track_caller]
        #[deny(unconditional_recursion)]
        fn forward(&self, input: &::todevice::Tensor) -> ::todevice::Result<::todevice::Tensor> {
            Self::forward(self, input)
        }
    };
    implementation(input, &forward)
}

fn loss(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let (name, text) = (&input.ident, input.ident.to_string());
    let module = implementation(
        input,
        &quote! {
            #[track_caller]
            fn forward(&self, _input: &::todevice::Tensor) -> ::todevice::Result<::todevice::Tensor> {
                ::todevice::nn::no_target(#text)
            }
        },
    )?;
    let forward = quote_spanned! {name.span()=>
        #[track_caller]
        #[deny(unconditional_recursion)]
        fn forward(
            &self,
            input: &::todevice::Tensor,
            target: &::todevice::Tensor,
        ) -> ::todevice::Result<::todevice::Tensor> {
            Self::forward(self, input, target)
        }
    };
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        #module

        #[automatically_derived]
        impl #generics ::todevice::nn::Loss for #name #arguments #conditions {
            #forward

            fn as_module(&self) -> &dyn ::todevice::nn::Module {
                self
            }
        }
    })
}

fn implementation(
    input: &DeriveInput,
    forward: &proc_macro2::TokenStream,
) -> Result<proc_macro2::TokenStream> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        _ => {
            return Err(Error::new(
                input.ident.span(),
                "derive(Module) is for structs: implement Module by hand",
            ));
        }
    };
    let (mut listed, mut skipped) = (Vec::new(), Vec::new());
    for (i, field) in fields.iter().enumerate() {
        match is_skipped(field)? {
            true => skipped.push(name_of(&member(fields, i))),
            false => listed.push((member(fields, i), field)),
        }
    }
    // With the field's span, the compiler's error points to a field whose type no module can have.
    let listed = listed.iter().map(|(member, field)| {
        let name = name_of(member);
        quote_spanned!(field.ty.span()=> (#name, &self.#member))
    });
    let (name, text) = (&input.ident, input.ident.to_string());
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::todevice::nn::Module for #name #arguments #conditions {
            fn name(&self) -> &'static str {
                #text
            }

            #forward

            fn fields(&self) -> ::std::vec::Vec<(&'static str, &dyn ::todevice::nn::ModuleField)> {
                ::std::vec![#(#listed),*]
            }

            fn skipped_fields(&self) -> ::std::option::Option<&'static [&'static str]> {
                ::std::option::Option::Some(&[#(#skipped),*])
            }
        }
    })
}

fn member(fields: &Fields, i: usize) -> Member {
    match fields.iter().nth(i).and_then(|field| field.ident.clone()) {
        Some(name) => Member::Named(name),
        None => Member::Unnamed(Index::from(i)),
    }
}

fn name_of(member: &Member) -> String {
    match member {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

fn is_skipped(field: &Field) -> Result<bool> {
    let mut skipped = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| match meta.path.is_ident("skip") {
            true => {
                skipped = true;
                Ok(())
            }
            false => Err(meta.error("above a field of a module, only `#[module(skip)]` may stand")),
        })?;
    }
    Ok(skipped)
}
